import { type EnvironmentName, type EnvironmentRow, environmentTable, unknownNames } from "./environmentTable";

/** What a script learns of its place in the world, by torchrun's names; environmentTable has their meanings and defaults. */
export interface Environment {
  readonly RANK: number;
  readonly WORLD_SIZE: number;
  readonly MASTER_ADDR: string;
  readonly MASTER_PORT: number;
  readonly RINGLET_JOB: string;
  readonly RINGLET_SECRET: string;
  /** Seconds. */
  readonly RINGLET_TIMEOUT: number;
  readonly RINGLET_BACKEND: string;
  /** The script's arguments. */
  readonly arguments: readonly string[];
}

type Source = Readonly<Record<string, unknown>>;

/**
 * `ringlet run` sets a global. A page of one's own passes the names in its address, in capitals or not: after `?`, the secret after `#`. A program
 * without a page has the process's environment.
 */
function readSource(): Source {
  const given: unknown = Reflect.get(globalThis, "__ringletEnvironment");
  if (typeof given === "object" && given !== null) return Object.fromEntries(Object.entries(given));
  if (typeof location === "undefined") return typeof process === "undefined" ? {} : process.env;
  const hidden = new URLSearchParams(location.hash.slice(1));
  const open = new URLSearchParams(location.search);
  const named = [...open, ...hidden].map(([name, value]) => [name.toUpperCase(), value] as const);
  return { ...Object.fromEntries(named), arguments: open.getAll("argument") };
}

const warned = new Set<string>();

/** Warns once of each name that nothing reads, such as a misspelt one. */
function checkedSource(): Source {
  const source = readSource();
  for (const sentence of unknownNames(Object.keys(source))) {
    if (warned.has(sentence)) continue;
    warned.add(sentence);
    console.warn(sentence);
  }
  return source;
}

function rowOf(name: EnvironmentName): EnvironmentRow {
  const row = environmentTable.find((one) => one.name === name);
  if (row === undefined) throw new Error(`The environment's table has no ${name}.`);
  return row;
}

function number(name: EnvironmentName, otherwise: number): number {
  const { kind, minimum = 0 } = rowOf(name);
  const text = checkedSource()[name];
  if (text === undefined || text === "") return otherwise;
  const value = Number(text);
  if (!Number.isFinite(value) || value < minimum || (kind === "integer" && !Number.isInteger(value)))
    throw new RangeError(
      kind === "integer"
        ? `${name} must be an integer from ${minimum}, got "${text}".`
        : `${name} must be a number of seconds from ${minimum}, got "${text}".`,
    );
  return value;
}

function text(name: EnvironmentName, otherwise: string): string {
  const value = checkedSource()[name];
  return typeof value === "string" && value !== "" ? value : otherwise;
}

const secretCharacters = /^[A-Za-z0-9_-]{22}$/;

/** Read when asked for, so that whoever sets it may do so late. Without any of it this is a world of one. */
export const env: Environment = {
  get RANK() {
    return number("RANK", 0);
  },
  get WORLD_SIZE() {
    return number("WORLD_SIZE", 1);
  },
  get MASTER_ADDR() {
    return text("MASTER_ADDR", typeof location === "undefined" ? "localhost" : location.hostname);
  },
  get MASTER_PORT() {
    const own =
      typeof location === "undefined" ? 0 : Number(location.port || (location.protocol === "https:" ? 443 : 80));
    return number("MASTER_PORT", own);
  },
  get RINGLET_JOB() {
    return text("RINGLET_JOB", "");
  },
  get RINGLET_SECRET() {
    const secret = text("RINGLET_SECRET", "");
    // The secret itself stays out of the sentence, which may end in a log.
    if (secret !== "" && !secretCharacters.test(secret))
      throw new RangeError(
        `RINGLET_SECRET must be 16 bytes as 22 characters of base64url, got ${secret.length} characters.`,
      );
    return secret;
  },
  get RINGLET_TIMEOUT() {
    return number("RINGLET_TIMEOUT", 60);
  },
  get RINGLET_BACKEND() {
    return text("RINGLET_BACKEND", "webrtc");
  },
  get arguments() {
    const list = checkedSource().arguments;
    return Array.isArray(list) ? list.map(String) : [];
  },
};
