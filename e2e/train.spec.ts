import { expect, test } from "@playwright/test";
import { type AuditLine, type TrainResult, train } from "./cli";
import { expectSameCurve } from "./curves";

const steps = 30;
const batch = 60;
const runs: { peers: number; result: TrainResult; audit: AuditLine[] }[] = [];

test.describe.configure({ mode: "serial" });

for (const peers of [1, 2, 3]) {
  test(`the command line trains the MLP in ${peers} tab${peers > 1 ? "s" : ""}`, async () => {
    const run = await train(
      ...["--model", "mlp", "--peers", String(peers), "--steps", String(steps), "--batch", String(batch)],
      ...["--optimizer", "sgd", "--learning-rate", "0.05", "--momentum", "0.9", "--seed", "7", "--adapter", "software"],
    );
    runs.push({ peers, ...run });
    expect(run.result.recipe).toBe("mnist");
    expect(run.result.steps).toBe(steps);
    expect(run.result.losses).toHaveLength(steps);
    expect(run.result.members.map((member) => member.rank)).toEqual(Array.from({ length: peers }, (_, rank) => rank));
    expect(run.result.losses.at(-1)).toBeLessThan(run.result.losses[0] ?? 0);
    expect(run.result.samplesPerSecond).toBeGreaterThan(0);
    expect(run.result.stepMilliseconds.p95).toBeGreaterThanOrEqual(run.result.stepMilliseconds.median);
  });
}

test("the curves of 1, 2 and 3 tabs agree to 1e-5 at every step", () => {
  const [alone, ...others] = runs;
  expect(others).toHaveLength(2);
  for (const { result } of others) expectSameCurve(result.losses, alone?.result.losses ?? []);
});

test("each step's samples are disjoint and complete, and the same set whoever is there", () => {
  const samplesOf = (audit: AuditLine[], step: number) =>
    audit.filter((line) => line.step === step).flatMap((line) => line.samples);
  for (const { peers, audit } of runs) {
    for (let step = 0; step < steps; step++) {
      const lines = audit.filter((line) => line.step === step);
      expect(new Set(lines.map((line) => line.member)).size).toBe(peers);
      for (const line of lines) expect(line.samples.length).toBeLessThan(peers === 1 ? batch + 1 : batch);
      const samples = samplesOf(audit, step);
      expect(samples).toHaveLength(batch);
      expect(new Set(samples).size).toBe(batch);
      expect([...samples].sort((a, b) => a - b)).toEqual(samplesOf(runs[0]?.audit ?? [], step).sort((a, b) => a - b));
    }
  }
});

test("members end with the same weights, bit for bit", () => {
  for (const { result } of runs) expect(new Set(result.members.map((member) => member.weightsHash)).size).toBe(1);
});

test("a member sends 2(N-1)/N of the model's bytes a step, within 5%, frames' headers counted", () => {
  const parameters = 784 * 128 + 128 + 128 * 64 + 64 + 64 * 10 + 10;
  for (const { peers, result } of runs.filter((run) => run.peers > 1)) {
    const expected = ((2 * (peers - 1)) / peers) * parameters * 4 * steps;
    for (const member of result.members) {
      expect(Math.abs(member.bytesSent / expected - 1)).toBeLessThan(0.05);
      console.log(
        `peers ${peers}, rank ${member.rank}: gradients ${member.gradientBytesSent} B, with headers ${member.bytesSent} B, ` +
          `all over its links ${member.linkBytesSent} B, bound ${Math.round(expected)} B`,
      );
    }
  }
});
