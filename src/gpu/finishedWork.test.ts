import { expect, test } from "vitest";
import { FinishedWork } from "./finishedWork";

/** A queue whose work is seen to be finished at the given submit only. */
function makeQueue(finishesAt: number) {
  const queue = { submits: 0, done: Promise.resolve(), submit: (): undefined => undefined };
  queue.done = new Promise((resolve) => {
    queue.submit = () => {
      queue.submits += 1;
      if (queue.submits === finishesAt) resolve();
      return undefined;
    };
  });
  return queue;
}

test("where the browser looks for finished work at submits only, waiting submits until the last wait is over", async () => {
  const queue = makeQueue(3);
  const work = new FinishedWork(queue, true);
  await Promise.all([work.wait(queue.done), work.wait(Promise.resolve())]);
  expect(queue.submits).toBe(3);
  await new Promise((resolve) => setTimeout(resolve, 50));
  expect(queue.submits).toBe(3);
});

test("a wait that fails ends the submits, too", async () => {
  const queue = makeQueue(1);
  const work = new FinishedWork(queue, true);
  await expect(work.wait(queue.done.then(() => Promise.reject(new Error("lost"))))).rejects.toThrow("lost");
  await new Promise((resolve) => setTimeout(resolve, 50));
  expect(queue.submits).toBe(1);
});

test("elsewhere waiting submits nothing", async () => {
  const queue = makeQueue(1);
  const work = new FinishedWork(queue, false);
  await work.wait(new Promise((resolve) => setTimeout(resolve, 50)));
  expect(queue.submits).toBe(0);
});
