/** In the order to test, since browsers also carry the names of those they descend from. */
const browsers = [
  [/\bEdgA?\//, "Edge"],
  [/\bOPR\//, "Opera"],
  [/\bSamsungBrowser\//, "Samsung Internet"],
  [/\b(?:Firefox|FxiOS)\//, "Firefox"],
  [/\b(?:Chrome|HeadlessChrome|CriOS)\//, "Chrome"],
  [/\bSafari\//, "Safari"],
] as const;

const systems = [
  [/\bAndroid\b/, "Android"],
  [/\biPhone\b/, "iPhone"],
  [/\biPad\b/, "iPad"],
  [/\bWindows\b/, "Windows"],
  [/\bCrOS\b/, "ChromeOS"],
  [/\bMacintosh\b/, "macOS"],
  [/\bLinux\b/, "Linux"],
] as const;

const find = (table: readonly (readonly [RegExp, string])[], userAgent: string) =>
  table.find(([pattern]) => pattern.test(userAgent))?.[1];

/** A name for this machine until its person gives one: "Chrome on Linux". */
export function defaultMachineName(userAgent: string): string {
  return `${find(browsers, userAgent) ?? "Browser"} on ${find(systems, userAgent) ?? "an unknown system"}`;
}

/** Longest name that fits the ring and the list. */
export const machineNameLength = 40;
