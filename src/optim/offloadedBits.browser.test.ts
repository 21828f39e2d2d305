import { expect, test } from "vitest";
import { expectedHash, hashOfOffloadedSteps } from "./testing/offloadedBits";

test("offloaded optimizers compute these bits, here as in Node, Chromium and Firefox", () => {
  expect(hashOfOffloadedSteps()).toBe(expectedHash);
});
