import { expect, test } from "@playwright/test";
import { train } from "./cli";

test("the MLP in two tabs reads at least 94% of all 10,000 validation digits after one epoch", async () => {
  test.setTimeout(360_000);
  const batch = 128;
  const steps = Math.floor(60_000 / batch);
  const { result, audit } = await train(
    ...["--model", "mlp", "--peers", "2", "--batch", String(batch), "--steps", String(steps), "--optimizer", "sgd"],
    ...["--learning-rate", "0.1", "--momentum", "0.9", "--seed", "1", "--validate-every", "0", "--adapter", "software"],
  );
  expect(result.validation.accuracy).toBeGreaterThanOrEqual(0.94);
  const samples = audit.flatMap((line) => line.samples);
  expect(samples).toHaveLength(steps * batch);
  expect(new Set(samples).size).toBe(steps * batch);
  console.log(`accuracy ${result.validation.accuracy}, ${result.samplesPerSecond.toFixed(0)} samples/s`);
});
