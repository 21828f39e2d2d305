import { expect, test } from "vitest";
import { seededRandom } from "./seededRandom";
import { VirtualClock } from "./virtualClock";

test("timers fire in order of due time, ties in the order they were set", async () => {
  const clock = new VirtualClock();
  const random = seededRandom(1);
  const delays = Array.from({ length: 200 }, () => Math.floor(random() * 40));
  const fired: { delay: number; index: number; now: number }[] = [];
  for (const [index, delay] of delays.entries())
    clock.setTimeout(() => fired.push({ delay, index, now: clock.now() }), delay);
  await clock.advance(100);
  const sorted = delays
    .map((delay, index) => ({ delay, index, now: delay }))
    .sort((a, b) => a.delay - b.delay || a.index - b.index);
  expect(fired).toEqual(sorted);
  expect(clock.now()).toBe(100);
});

test("a cleared timer never fires, and promises run between timers", async () => {
  const clock = new VirtualClock();
  const log: string[] = [];
  const cleared = clock.setTimeout(() => log.push("cleared"), 5);
  clock.setTimeout(async () => {
    await null;
    await null;
    log.push("after the first");
    clock.clearTimeout(cleared);
    clock.setTimeout(() => log.push("nested"), 2);
  }, 1);
  clock.setTimeout(() => log.push("second"), 2);
  await clock.advance(2.5);
  expect(log).toEqual(["after the first", "second"]);
  expect(clock.nextDue).toBe(3);
  await clock.advance(10);
  expect(log).toEqual(["after the first", "second", "nested"]);
  expect(clock.nextDue).toBeNull();
});

test("runUntil stops as soon as its condition holds, or says that it never does", async () => {
  const clock = new VirtualClock();
  let count = 0;
  const tick = () => {
    count += 1;
    if (count < 10) clock.setTimeout(tick, 1);
  };
  tick();
  expect(await clock.runUntil(() => count === 5)).toBe(true);
  expect(clock.now()).toBe(4);
  expect(await clock.runUntil(() => count === 50)).toBe(false);
  expect(count).toBe(10);
});
