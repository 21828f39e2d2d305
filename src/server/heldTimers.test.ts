import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { HeldTimers } from "./heldTimers";

beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(() => {
  vi.useRealTimers();
});

test("an endless timer runs until it is stopped, and others are left alone", () => {
  const timers = new HeldTimers();
  const ticks: number[] = [];
  const tick = (step: number) => {
    ticks.push(step);
    setTimeout(tick, 10, step + 1);
  };
  const other = vi.fn();
  timers.run(() => setTimeout(tick, 10, 0));
  setTimeout(other, 60);
  vi.advanceTimersByTime(35);
  expect(ticks).toEqual([0, 1, 2]);
  timers.stop();
  expect(vi.getTimerCount()).toBe(1);
  vi.advanceTimersByTime(100);
  expect(ticks).toEqual([0, 1, 2]);
  expect(other).toHaveBeenCalledOnce();
});

test("setTimeout is the usual one again afterwards, also when the work throws", () => {
  const usual = globalThis.setTimeout;
  expect(() =>
    new HeldTimers().run(() => {
      throw new Error("broken");
    }),
  ).toThrow("broken");
  expect(globalThis.setTimeout).toBe(usual);
});
