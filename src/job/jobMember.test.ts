import { describe, expect, it } from "vitest";
import { Simulation, type Tab } from "./testing/simulation";

/** The curve of a lone member, which all others must follow. */
async function loneCurve(options: ConstructorParameters<typeof Simulation>[0] = {}): Promise<readonly number[]> {
  const simulation = new Simulation(options);
  const tab = simulation.create();
  await simulation.untilFinished();
  simulation.end();
  return tab.job.snapshot(0).losses;
}

function expectSameCurve(losses: readonly number[], expected: readonly number[]): void {
  expect(losses).toHaveLength(expected.length);
  losses.forEach((loss, step) => {
    expect(Math.abs(loss / expected[step]! - 1), `step ${step}: ${loss} and ${expected[step]}`).toBeLessThan(1e-5);
  });
}

/** Every step's samples are the global batch: disjoint and complete. */
function expectCompleteAudit(simulation: Simulation, tabs: readonly Tab[], lone: Tab): void {
  const whole = lone.job.audit();
  const lines = tabs.flatMap((tab) => [...tab.job.audit()]);
  for (const { step, samples } of whole) {
    const parts = lines.filter((line) => line.step === step).sort((a, b) => a.rank - b.rank);
    expect(
      parts.flatMap((part) => part.samples),
      `step ${step}`,
    ).toEqual(samples);
  }
  expect(lines.length).toBeGreaterThanOrEqual(simulation.spec.steps);
}

async function loneTab(): Promise<Tab> {
  const simulation = new Simulation();
  const tab = simulation.create();
  await simulation.untilFinished();
  return tab;
}

describe("a job", () => {
  for (const size of [1, 2, 3, 5])
    it(`of ${size} follows the lone member's curve, and its replicas are bit-identical`, async () => {
      const lone = await loneTab();
      const simulation = await Simulation.ring(size);
      await simulation.untilFinished();
      const results = await simulation.wait(Promise.all(simulation.tabs.map((tab) => tab.job.result())));
      for (const tab of simulation.tabs) {
        expectSameCurve(tab.job.snapshot(0).losses, lone.job.snapshot(0).losses);
        expect(tab.job.snapshot(0).losses).toEqual(simulation.tabs[0]!.job.snapshot(0).losses);
        expect(tab.job.snapshot(0).validations.map(({ step }) => step)).toEqual([10, 20, 30, 40]);
        expect(tab.job.snapshot(0).validations).toEqual(simulation.tabs[0]!.job.snapshot(0).validations);
      }
      expect(new Set(results.map(({ self }) => self.weightsHash)).size).toBe(1);
      expect(results.reduce((sum, { self }) => sum + self.samples, 0)).toBe(48 * 40);
      expectCompleteAudit(simulation, simulation.tabs, lone);
      simulation.end();
    });

  it("learns: the loss falls and the validation digits are guessed", async () => {
    const losses = await loneCurve();
    expect(losses[39]!).toBeLessThan(losses[0]! / 2);
  });
});
