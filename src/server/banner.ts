import { renderUnicodeCompact } from "uqr";
import type { RunningServer } from "./server";

/** What `ringlet serve` prints: the addresses, and a QR code of the likeliest for other machines. */
export function banner(server: Pick<RunningServer, "localUrl" | "networkUrls">, isTerminal: boolean): string {
  const [best, ...others] = server.networkUrls;
  const lines = ["Ringlet is ready.", "", `  On this machine    ${server.localUrl}`];
  if (best === undefined) {
    lines.push("", "This machine has no address on a network, so no other machine can join.");
  } else {
    lines.push(`  On other machines  ${best}`, ...others.map((url) => `                     ${url}`), "");
    lines.push(
      ...qrCode(best, isTerminal),
      "",
      `Other machines' browsers warn once, since this machine made its certificate itself: choose "Advanced", then proceed.`,
    );
  }
  lines.push("Stop with Ctrl+C.");
  return `${lines.join("\n")}\n`;
}

/** White is drawn and black left out; on a terminal the colours are set, since its background may be light. */
function qrCode(text: string, isTerminal: boolean): string[] {
  const rows = renderUnicodeCompact(text, { border: 2 }).split("\n");
  return rows.map((row) => (isTerminal ? `  \u001b[97;40m${row}\u001b[0m` : `  ${row}`));
}
