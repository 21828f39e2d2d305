/** What a script learns of its place in the world, by torchrun's names. */
export interface Environment {
  readonly RANK: number;
  readonly WORLD_SIZE: number;
  /** The server at which the ranks find each other. */
  readonly MASTER_ADDR: string;
  readonly MASTER_PORT: number;
  /** Names the world; ranks with the same name and secret meet. */
  readonly RINGLET_JOB: string;
  /** 16 bytes, base64url; never sent to a server. */
  readonly RINGLET_SECRET: string;
  /** The script's arguments. */
  readonly arguments: readonly string[];
}

type Source = Readonly<Record<string, unknown>>;

/** `ringlet run` sets a global; a page of one's own passes the names in its address: after `?`, the secret after `#`. */
function readSource(): Source {
  const given: unknown = Reflect.get(globalThis, "__ringletEnvironment");
  if (typeof given === "object" && given !== null) return Object.fromEntries(Object.entries(given));
  if (typeof location === "undefined") return {};
  const hidden = new URLSearchParams(location.hash.slice(1));
  const open = new URLSearchParams(location.search);
  return { ...Object.fromEntries(open), ...Object.fromEntries(hidden), arguments: open.getAll("argument") };
}

function integer(source: Source, name: string, otherwise: number): number {
  const text = source[name];
  if (text === undefined || text === "") return otherwise;
  const value = Number(text);
  if (!Number.isInteger(value) || value < 0) throw new RangeError(`${name} must be an integer from 0, got "${text}".`);
  return value;
}

function text(source: Source, name: string, otherwise: string): string {
  const value = source[name];
  return typeof value === "string" ? value : otherwise;
}

/** Read when asked for, so that whoever sets it may do so late. Without any of it this is a world of one. */
export const env: Environment = {
  get RANK() {
    return integer(readSource(), "RANK", 0);
  },
  get WORLD_SIZE() {
    return integer(readSource(), "WORLD_SIZE", 1);
  },
  get MASTER_ADDR() {
    return text(readSource(), "MASTER_ADDR", typeof location === "undefined" ? "localhost" : location.hostname);
  },
  get MASTER_PORT() {
    const own =
      typeof location === "undefined" ? 0 : Number(location.port || (location.protocol === "https:" ? 443 : 80));
    return integer(readSource(), "MASTER_PORT", own);
  },
  get RINGLET_JOB() {
    return text(readSource(), "RINGLET_JOB", "");
  },
  get RINGLET_SECRET() {
    return text(readSource(), "RINGLET_SECRET", "");
  },
  get arguments() {
    const list = readSource().arguments;
    return Array.isArray(list) ? list.map(String) : [];
  },
};
