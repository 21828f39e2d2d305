import { type Deferred, deferred } from "../base/deferred";
import { firstReservedTag } from "./mailbox";
import { type StoreAnswer, type StoreRequest, StoreServer } from "./storeServer";
import { CollectiveError } from "./work";
import type { World } from "./world";

const requestTag = firstReservedTag + 16;
const answerTag = firstReservedTag + 17;
/** How much longer than the server's time-out an answer may take. */
const graceMilliseconds = 5000;
/** With its envelope it must fit one frame. */
const messageBytes = 60 * 1024;

/**
 * Keys and values that all ranks share, kept by rank 0, as c10d's Store. Values are strings. Every call resolves when rank 0 has done it, in the
 * order in which it learns of them.
 */
export class Store {
  readonly #world: World;
  readonly #server: StoreServer | null;
  readonly #pending = new Map<number, Deferred<StoreAnswer>>();
  #nextId = 0;

  constructor(world: World) {
    this.#world = world;
    this.#server = world.rank === 0 ? new StoreServer(world.clock) : null;
    if (this.#server !== null) {
      world.mailbox.serve(requestTag, (from, message) => this.#asked(from, message));
      return;
    }
    world.mailbox.serve(answerTag, (from, message) => this.#answered(from, message));
    void world.whenLost(0).then((sentence) => {
      for (const { reject } of this.#pending.values())
        reject(new CollectiveError(`The store has no answer from rank 0. ${sentence}`));
    });
  }

  async set(key: string, value: string): Promise<void> {
    await this.#ask({ kind: "set", key, value });
  }

  /** Waits until the key is there. @throws CollectiveError when it isn't within the time-out. */
  async get(key: string, timeoutMilliseconds = this.#world.timeoutMilliseconds): Promise<string> {
    return this.#ask({ kind: "get", key, timeoutMilliseconds });
  }

  /** Waits until all keys are there. @throws CollectiveError naming those that aren't within the time-out. */
  async wait(keys: readonly string[], timeoutMilliseconds = this.#world.timeoutMilliseconds): Promise<void> {
    await this.#ask({ kind: "wait", keys, timeoutMilliseconds });
  }

  /** Adds to the integer under a key, which is 0 when there is none. @returns the sum. */
  async add(key: string, amount: number): Promise<number> {
    return Number(await this.#ask({ kind: "add", key, amount }));
  }

  /**
   * Sets the key if its value is `expected`, or if there is none and `expected` is empty.
   * @returns the value that the key has then; `expected` where there is none.
   */
  async compareSet(key: string, expected: string, desired: string): Promise<string> {
    return this.#ask({ kind: "compareSet", key, expected, desired });
  }

  /** @returns whether there was such a key. */
  async deleteKey(key: string): Promise<boolean> {
    return (await this.#ask({ kind: "delete", key })) === "true";
  }

  /** The number of keys. */
  async numKeys(): Promise<number> {
    return Number(await this.#ask({ kind: "count" }));
  }

  async #ask(request: StoreRequest): Promise<string> {
    const answer = await (this.#server === null ? this.#askServer(request) : this.#server.handle(request));
    if (answer.kind === "failure") throw new CollectiveError(`Rank ${this.#world.rank}: ${answer.sentence}`);
    return answer.value;
  }

  async #askServer(request: StoreRequest): Promise<StoreAnswer> {
    const id = this.#nextId++;
    const bytes = new Uint8Array(new TextEncoder().encode(JSON.stringify({ id, request })));
    if (bytes.length > messageBytes)
      throw new RangeError(`The store takes keys and values up to ${messageBytes} bytes, and got ${bytes.length}.`);
    const { clock, mailbox, timeoutMilliseconds } = this.#world;
    const title = `The store's ${request.kind}`;
    const answer = deferred<StoreAnswer>();
    this.#pending.set(id, answer);
    const limit =
      ("timeoutMilliseconds" in request ? request.timeoutMilliseconds : timeoutMilliseconds) + graceMilliseconds;
    const timer = clock.setTimeout(
      () => answer.reject(new CollectiveError(`${title} got no answer from rank 0 for ${limit / 1000} s.`)),
      limit,
    );
    try {
      // If the link closes before it is sent, the loss of rank 0 tells.
      mailbox.sendBytes(this.#world.linkTo(0), bytes, { group: 0, tag: requestTag }, title);
      return await answer.promise;
    } finally {
      clock.clearTimeout(timer);
      this.#pending.delete(id);
    }
  }

  #asked(from: number, message: Uint8Array<ArrayBuffer>): void {
    const parsed = parseRequest(message);
    if (parsed === null || this.#server === null) return;
    void this.#server.handle(parsed.request).then((answer) => {
      const bytes = new Uint8Array(new TextEncoder().encode(JSON.stringify({ id: parsed.id, answer })));
      // One that is gone asks for nothing any more.
      if (this.#world.isLinked(from))
        this.#world.mailbox.sendBytes(
          this.#world.linkTo(from),
          bytes,
          { group: 0, tag: answerTag },
          "The store's answer",
        );
    });
  }

  #answered(from: number, message: Uint8Array<ArrayBuffer>): void {
    const parsed = from === 0 ? parseAnswer(message) : null;
    if (parsed !== null) this.#pending.get(parsed.id)?.resolve(parsed.answer);
  }
}

function parse(message: Uint8Array): unknown {
  try {
    return JSON.parse(new TextDecoder().decode(message));
  } catch {
    return null;
  }
}

const isObject = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === "object" && value !== null;
const isText = (value: unknown): value is string => typeof value === "string";
const isNumber = (value: unknown): value is number => typeof value === "number";

function parseRequest(message: Uint8Array): { readonly id: number; readonly request: StoreRequest } | null {
  const envelope = parse(message);
  if (!isObject(envelope) || !isNumber(envelope.id) || !isObject(envelope.request)) return null;
  const request = requestFrom(envelope.request);
  return request === null ? null : { id: envelope.id, request };
}

function requestFrom(fields: Readonly<Record<string, unknown>>): StoreRequest | null {
  const { kind, key, value, keys, amount, expected, desired, timeoutMilliseconds } = fields;
  if (kind === "count") return { kind };
  if (kind === "wait")
    return Array.isArray(keys) && keys.every(isText) && isNumber(timeoutMilliseconds)
      ? { kind, keys, timeoutMilliseconds }
      : null;
  if (!isText(key)) return null;
  switch (kind) {
    case "set":
      return isText(value) ? { kind, key, value } : null;
    case "get":
      return isNumber(timeoutMilliseconds) ? { kind, key, timeoutMilliseconds } : null;
    case "add":
      return isNumber(amount) ? { kind, key, amount } : null;
    case "compareSet":
      return isText(expected) && isText(desired) ? { kind, key, expected, desired } : null;
    case "delete":
      return { kind, key };
    default:
      return null;
  }
}

function parseAnswer(message: Uint8Array): { readonly id: number; readonly answer: StoreAnswer } | null {
  const envelope = parse(message);
  if (!isObject(envelope) || !isNumber(envelope.id) || !isObject(envelope.answer)) return null;
  const { kind, value, sentence } = envelope.answer;
  if (kind === "value" && isText(value)) return { id: envelope.id, answer: { kind, value } };
  if (kind === "failure" && isText(sentence)) return { id: envelope.id, answer: { kind, sentence } };
  return null;
}
