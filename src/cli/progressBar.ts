/** One line of a terminal that fills up; without a terminal, a line whenever another tenth is done. */
export class ProgressBar {
  #tenths = -1;
  #drawn = false;

  constructor(private readonly stream: NodeJS.WriteStream = process.stderr) {}

  /** @param done 0 to 1 */
  show(done: number, text: string): void {
    if (!this.stream.isTTY) {
      const tenths = Math.floor(done * 10);
      if (tenths > this.#tenths) this.stream.write(`${String(tenths * 10).padStart(3)}%  ${text}\n`);
      this.#tenths = Math.max(tenths, this.#tenths);
      return;
    }
    const width = Math.max(10, Math.min(40, (this.stream.columns ?? 80) - text.length - 8));
    const filled = Math.round(done * width);
    const bar = "█".repeat(filled) + "░".repeat(width - filled);
    this.stream.write(`\r\u001b[K${bar} ${Math.floor(done * 100)}% ${text}`);
    this.#drawn = true;
  }

  /** A line of its own, above the bar. */
  print(line: string): void {
    this.stream.write(this.#drawn ? `\r\u001b[K${line}\n` : `${line}\n`);
  }

  end(): void {
    if (this.#drawn) this.stream.write("\n");
    this.#drawn = false;
  }
}
