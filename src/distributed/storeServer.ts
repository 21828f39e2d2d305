import type { Clock } from "../base/clock";

export type StoreRequest =
  | { readonly kind: "set"; readonly key: string; readonly value: string }
  | { readonly kind: "get"; readonly key: string; readonly timeoutMilliseconds: number }
  | { readonly kind: "wait"; readonly keys: readonly string[]; readonly timeoutMilliseconds: number }
  | { readonly kind: "add"; readonly key: string; readonly amount: number }
  | { readonly kind: "compareSet"; readonly key: string; readonly expected: string; readonly desired: string }
  | { readonly kind: "delete"; readonly key: string }
  | { readonly kind: "count" };

export type StoreAnswer =
  | { readonly kind: "value"; readonly value: string }
  | { readonly kind: "failure"; readonly sentence: string };

/** The most bytes, as characters, that all keys and values may have. */
const limitCharacters = 64 * 1024 * 1024;

/** What rank 0 keeps for all. */
export class StoreServer {
  readonly #clock: Clock;
  readonly #values = new Map<string, string>();
  #characters = 0;
  /** Called with each key that is set. */
  readonly #waiting = new Set<() => void>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  async handle(request: StoreRequest): Promise<StoreAnswer> {
    switch (request.kind) {
      case "set":
        return this.#set(request.key, request.value, "");
      case "get": {
        const missing = await this.#wait([request.key], request.timeoutMilliseconds);
        return missing ?? { kind: "value", value: this.#values.get(request.key) ?? "" };
      }
      case "wait":
        return (await this.#wait(request.keys, request.timeoutMilliseconds)) ?? { kind: "value", value: "" };
      case "add": {
        const before = Number(this.#values.get(request.key) ?? "0");
        if (!Number.isSafeInteger(before) || !Number.isSafeInteger(request.amount))
          return {
            kind: "failure",
            sentence: `The store adds integers, and key "${request.key}" is "${this.#values.get(request.key) ?? "0"}", to which ${request.amount} was to be added.`,
          };
        const sum = String(before + request.amount);
        return this.#set(request.key, sum, sum);
      }
      case "compareSet": {
        const value = this.#values.get(request.key);
        if ((value ?? "") === request.expected) return this.#set(request.key, request.desired, request.desired);
        return { kind: "value", value: value ?? request.expected };
      }
      case "delete": {
        const value = this.#values.get(request.key);
        if (value !== undefined) this.#characters -= request.key.length + value.length;
        return { kind: "value", value: String(this.#values.delete(request.key)) };
      }
      case "count":
        return { kind: "value", value: String(this.#values.size) };
    }
  }

  #set(key: string, value: string, answer: string): StoreAnswer {
    const before = this.#values.get(key);
    const characters = this.#characters + value.length + (before === undefined ? key.length : -before.length);
    if (characters > limitCharacters)
      return { kind: "failure", sentence: `The store is full: it holds at most ${limitCharacters} characters.` };
    this.#characters = characters;
    this.#values.set(key, value);
    for (const check of [...this.#waiting]) check();
    return { kind: "value", value: answer };
  }

  /** @returns null once all keys are there. */
  #wait(keys: readonly string[], timeoutMilliseconds: number): Promise<StoreAnswer | null> {
    const missing = () => keys.filter((key) => !this.#values.has(key));
    if (missing().length === 0) return Promise.resolve(null);
    return new Promise((resolve) => {
      const check = () => {
        if (missing().length > 0) return;
        end();
        resolve(null);
      };
      const timer = this.#clock.setTimeout(() => {
        end();
        const names = missing().map((key) => `"${key}"`);
        resolve({
          kind: "failure",
          sentence: `The store waited ${timeoutMilliseconds / 1000} s for ${names.join(", ")}, which nobody set.`,
        });
      }, timeoutMilliseconds);
      const end = () => {
        this.#waiting.delete(check);
        this.#clock.clearTimeout(timer);
      };
      this.#waiting.add(check);
    });
  }
}
