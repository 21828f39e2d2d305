import { expect, test } from "vitest";
import { phaseText } from "./phaseText";

test("a pause gives its reason, or who asked for it", () => {
  expect(phaseText({ kind: "paused", by: "Anna", reason: "" }).detail).toBe("Anna paused the job for everyone.");
  expect(phaseText({ kind: "paused", by: "Anna", reason: "The loss left the numbers." }).detail).toBe(
    "The loss left the numbers.",
  );
});

test("a failure's sentence is what people see", () => {
  expect(phaseText({ kind: "failed", message: "The GPU is gone." })).toEqual({
    label: "Failed",
    detail: "The GPU is gone.",
    tone: "bad",
  });
});
