import type { Clock, TimerHandle } from "./clock";

interface Timer {
  readonly id: number;
  readonly due: number;
  readonly callback: () => void;
}

/** Lets every promise reaction that is ready run: a task of its own comes after all microtasks. */
function settle(): Promise<void> {
  return new Promise((resolve) => {
    if (typeof setImmediate === "function") {
      setImmediate(resolve);
      return;
    }
    const { port1, port2 } = new MessageChannel();
    port1.onmessage = () => {
      port1.close();
      resolve();
    };
    port2.postMessage(null);
  });
}

/**
 * A clock that moves only when told to. Timers fire in the order of their due times, ties in the order they were set,
 * and between two timers every promise that is ready runs: a run depends on nothing but what the program does.
 */
export class VirtualClock implements Clock {
  #now = 0;
  #nextId = 1;
  /** A binary heap by (due, id). */
  readonly #heap: Timer[] = [];
  /** Timers that are neither fired nor cleared; a cleared one stays in the heap until its turn. */
  readonly #live = new Set<number>();

  now(): number {
    return this.#now;
  }

  setTimeout(callback: () => void, milliseconds: number): TimerHandle {
    const id = this.#nextId++;
    this.#live.add(id);
    this.#push({ id, due: this.#now + Math.max(0, milliseconds), callback });
    return id;
  }

  clearTimeout(handle: TimerHandle): void {
    if (typeof handle === "number") this.#live.delete(handle);
  }

  /** When the next timer is due, or null when there is none. */
  get nextDue(): number | null {
    for (;;) {
      const first = this.#heap[0];
      if (first === undefined) return null;
      if (this.#live.has(first.id)) return first.due;
      this.#pop();
    }
  }

  /** Moves on by `milliseconds`, running what falls due on the way. */
  async advance(milliseconds: number): Promise<void> {
    const end = this.#now + milliseconds;
    await this.runUntil(() => false, end);
    this.#now = end;
  }

  /**
   * Runs timers until `finished()` holds, none is left, or the next one is due after `limit`.
   * @returns whether `finished()` held in the end.
   */
  async runUntil(finished: () => boolean, limit = Number.POSITIVE_INFINITY): Promise<boolean> {
    await settle();
    while (!finished()) {
      const due = this.nextDue;
      if (due === null || due > limit) return false;
      this.#now = due;
      const timer = this.#pop();
      if (timer !== undefined) {
        this.#live.delete(timer.id);
        timer.callback();
      }
      await settle();
    }
    return true;
  }

  #push(timer: Timer): void {
    const heap = this.#heap;
    let index = heap.push(timer) - 1;
    while (index > 0) {
      const parent = (index - 1) >> 1;
      if (!before(timer, heap[parent]!)) break;
      heap[index] = heap[parent]!;
      index = parent;
    }
    heap[index] = timer;
  }

  #pop(): Timer | undefined {
    const heap = this.#heap;
    const first = heap[0];
    const last = heap.pop();
    if (last === undefined || heap.length === 0) return first;
    let index = 0;
    for (;;) {
      let child = 2 * index + 1;
      if (child >= heap.length) break;
      if (child + 1 < heap.length && before(heap[child + 1]!, heap[child]!)) child += 1;
      if (!before(heap[child]!, last)) break;
      heap[index] = heap[child]!;
      index = child;
    }
    heap[index] = last;
    return first;
  }
}

function before(a: Timer, b: Timer): boolean {
  return a.due < b.due || (a.due === b.due && a.id < b.id);
}
