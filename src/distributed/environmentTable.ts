/** A name that Ringlet reads from the environment. docs/environment.md shows this table, and a test compares the two. */
export interface EnvironmentRow {
  readonly name: string;
  /** Who reads it: a rank's script, or the command line. */
  readonly reader: "rank" | "command";
  readonly kind: "integer" | "seconds" | "text" | "secret" | "json";
  /** As the docs say it. */
  readonly byDefault: string;
  readonly effect: string;
  /** The least integer or number that is possible. */
  readonly minimum?: number;
}

export const environmentTable = [
  {
    name: "RANK",
    reader: "rank",
    kind: "integer",
    minimum: 0,
    byDefault: "0",
    effect: "This rank's number, from 0 to WORLD_SIZE - 1.",
  },
  {
    name: "WORLD_SIZE",
    reader: "rank",
    kind: "integer",
    minimum: 1,
    byDefault: "1",
    effect: "The number of ranks. 1 needs no server and no others.",
  },
  {
    name: "MASTER_ADDR",
    reader: "rank",
    kind: "text",
    byDefault: "the page's own host",
    effect: "The host of the Ringlet server at which the ranks find each other.",
  },
  {
    name: "MASTER_PORT",
    reader: "rank",
    kind: "integer",
    minimum: 0,
    byDefault: "the page's own port",
    effect: "That server's port.",
  },
  {
    name: "RINGLET_JOB",
    reader: "rank",
    kind: "text",
    byDefault: "empty",
    effect: "Names the world: ranks with the same name and secret meet.",
  },
  {
    name: "RINGLET_SECRET",
    reader: "rank",
    kind: "secret",
    byDefault: "empty",
    effect:
      "16 bytes, base64url, that ranks prove to each other. In an address it stands behind `#`, which no server sees.",
  },
  {
    name: "RINGLET_TIMEOUT",
    reader: "rank",
    kind: "seconds",
    minimum: 0.001,
    byDefault: "60",
    effect: "How many seconds to wait for the other ranks, and how long a collective may go without progress.",
  },
  {
    name: "RINGLET_BACKEND",
    reader: "rank",
    kind: "text",
    byDefault: "webrtc",
    effect: "The transport: `webrtc`, or one that the script registered by `dist.registerBackend`.",
  },
  {
    name: "RINGLET_ICE_SERVERS",
    reader: "command",
    kind: "json",
    byDefault: "none",
    effect: "STUN and TURN servers for tabs on other networks: a JSON list as RTCPeerConnection takes it.",
  },
  {
    name: "RINGLET_CACHE",
    reader: "command",
    kind: "text",
    byDefault: "the user's cache folder",
    effect: "Where the server keeps its certificate and prepared data.",
  },
  {
    name: "RINGLET_BROWSER",
    reader: "command",
    kind: "text",
    byDefault: "the first that is found",
    effect: "The Chromium, Chrome or Edge that headless tabs run in.",
  },
] as const satisfies readonly EnvironmentRow[];

export type EnvironmentName = (typeof environmentTable)[number]["name"];

/** Variables of the tests, which a run of the product doesn't read but which may be set all the same. */
const testNames: readonly string[] = [
  "RINGLET_FIREFOX",
  "RINGLET_FIRST_SEED",
  "RINGLET_PICTURES",
  "RINGLET_REFERENCE",
  "RINGLET_SEEDS",
  "RINGLET_TEST_FULL",
  "RINGLET_TRAINING_REFERENCE",
];

/** A sentence for each name that begins with RINGLET_ and that nothing reads. */
export function unknownNames(names: Iterable<string>): string[] {
  const known: readonly string[] = [...environmentTable.map(({ name }) => name), ...testNames];
  return [...names]
    .map((name) => ({ name, upper: name.toUpperCase() }))
    .filter(({ upper }) => upper.startsWith("RINGLET_") && !known.includes(upper))
    .map(({ name, upper }) => {
      const closest = known.find((one) => one.startsWith("RINGLET_") && distance(one, upper) <= 3);
      return closest === undefined
        ? `Nothing reads ${name}; docs/environment.md lists what is read.`
        : `Nothing reads ${name}: did you mean ${closest}?`;
    });
}

/** Levenshtein's. */
function distance(a: string, b: string): number {
  let row = Array.from({ length: b.length + 1 }, (_, index) => index);
  for (let i = 1; i <= a.length; i += 1) {
    const next = [i];
    for (let j = 1; j <= b.length; j += 1)
      next.push(Math.min(row[j]! + 1, next[j - 1]! + 1, row[j - 1]! + (a[i - 1] === b[j - 1] ? 0 : 1)));
    row = next;
  }
  return row[b.length]!;
}
