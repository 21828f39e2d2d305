/** How many colours the style sheet has for members (--member0 and on). */
export const memberColorCount = 8;

/** Gives each member a colour that it keeps while it is there; a newcomer takes the first that is free. */
export class MemberColors {
  #colors = new Map<string, number>();

  /** The colours of the members present, by id. */
  assign(present: readonly string[]): ReadonlyMap<string, number> {
    for (const id of [...this.#colors.keys()]) if (!present.includes(id)) this.#colors.delete(id);
    for (const id of present) {
      if (this.#colors.has(id)) continue;
      const taken = new Set(this.#colors.values());
      let color = 0;
      while (taken.has(color) && color < memberColorCount - 1) color += 1;
      this.#colors.set(id, taken.has(color) ? this.#colors.size % memberColorCount : color);
    }
    return this.#colors;
  }
}
