import { expect } from "vitest";
import { Sampler } from "../sampler";
import { Simulation, type SimulationOptions, type Tab } from "./simulation";

const curves = new Map<string, Promise<readonly number[]>>();

/** The losses of a lone member, which every job of the same specification must follow. */
export function loneCurve(spec: SimulationOptions["spec"] = {}): Promise<readonly number[]> {
  const key = JSON.stringify(spec);
  const known = curves.get(key);
  if (known !== undefined) return known;
  const curve = (async () => {
    const simulation = new Simulation({ spec });
    const tab = simulation.create();
    await simulation.untilFinished();
    simulation.end();
    return tab.job.snapshot(0).losses;
  })();
  curves.set(key, curve);
  return curve;
}

/** The same losses to a relative 1e-5 at every step. */
export function expectSameCurve(losses: readonly number[], expected: readonly number[], what = ""): void {
  expect(losses.length, what).toBe(expected.length);
  losses.forEach((loss, step) => {
    const difference = Math.abs(loss / expected[step]! - 1);
    // NaN must fail too.
    if (!(difference < 1e-5)) expect.fail(`${what} step ${step}: the loss is ${loss}, alone it is ${expected[step]}`);
  });
}

/**
 * The samples that the members computed for each step are its global batch, each once. What the members that are there
 * lack for a step was computed by some that are gone: as a line of their audit, or, for one that died before it had
 * committed the step, as the latest thing it computed.
 */
export function expectCompleteAudit(simulation: Simulation, tabs: readonly Tab[], what = ""): void {
  const { seed, batch, steps } = simulation.spec;
  const sampler = new Sampler(seed, 200, batch);
  const sorted = (samples: readonly number[]) => [...samples].sort((a, b) => a - b);
  const linesOf = (tab: Tab, step: number) => tab.job.audit().filter((line) => line.step === step);
  for (let step = 0; step < steps; step += 1) {
    const missing = sorted([...sampler.indices(step, 0, batch)]);
    const take = (samples: readonly number[]): boolean => {
      const rest = [...missing];
      for (const sample of samples) {
        const at = rest.indexOf(sample);
        if (at < 0) return false;
        rest.splice(at, 1);
      }
      missing.splice(0, missing.length, ...rest);
      return true;
    };
    const members = tabs.filter((tab) => simulation.members.includes(tab));
    for (const tab of members)
      for (const { samples } of linesOf(tab, step))
        if (!take(samples)) expect.fail(`${what} step ${step}: tab ${tab.index} took samples of others: ${samples}`);
    // Lines first: what else the dead computed may have been for an attempt that failed.
    const others = tabs.filter((other) => !members.includes(other));
    for (const tab of others) take(linesOf(tab, step)[0]?.samples ?? []);
    for (const tab of others) if (linesOf(tab, step).length === 0) take([...(tab.replica()?.latest ?? [])]);
    if (missing.length > 0) {
      const parts = tabs.map((tab) => {
        const where = members.includes(tab) ? "member" : tab.alive ? "out" : "dead";
        const lines = linesOf(tab, step).map(({ rank, samples }) => `rank ${rank}, ${samples.length} samples`);
        const notices = tab.job.snapshot(0).notices.map(({ text }) => text);
        return `tab ${tab.index} (${where}): ${lines}, latest [${tab.replica()?.latest}] ${JSON.stringify(notices)}`;
      });
      expect.fail(`${what} step ${step}: nobody took ${missing}\n${parts.join("\n")}`);
    }
  }
  for (const tab of tabs) {
    const own = tab.job.audit().map(({ step }) => step);
    expect(new Set(own).size, `${what} tab ${tab.index} committed a step twice`).toBe(own.length);
  }
}

/** All members that are there have the same weights, curve and validations. */
export async function expectReplicasEqual(simulation: Simulation, what = ""): Promise<void> {
  const { members } = simulation;
  const results = await simulation.wait(Promise.all(members.map((tab) => tab.job.result())));
  expect(new Set(results.map(({ self }) => self.weightsHash)).size, what).toBe(1);
  for (const result of results) {
    expect(result.losses, what).toEqual(results[0]!.losses);
    expect(result.validation, what).toEqual(results[0]!.validation);
  }
}

/** Everything that must hold once a job is over, whatever happened in it. */
export async function expectGoodEnd(simulation: Simulation, what = ""): Promise<void> {
  const expected = await loneCurve(simulation.options.spec);
  expect(simulation.members.length, what).toBeGreaterThan(0);
  for (const tab of simulation.members)
    expectSameCurve(tab.job.snapshot(0).losses, expected, `${what} tab ${tab.index},`);
  expectCompleteAudit(simulation, simulation.tabs, what);
  await expectReplicasEqual(simulation, what);
}
