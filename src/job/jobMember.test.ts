import { describe, expect, it, vi } from "vitest";
import { realClock } from "../base/clock";
import { InProcessHub } from "../transport/inProcess";
import { memberId } from "../transport/memberId";
import { JobMember } from "./jobMember";
import { manifestHash } from "./manifest";
import { expectGoodEnd, expectSameCurve, loneCurve } from "./testing/checks";
import { Simulation } from "./testing/simulation";
import { SoftmaxReplica } from "./testing/softmaxReplica";

vi.setConfig({ testTimeout: 60_000 });

describe("a job", () => {
  for (const size of [1, 2, 3, 5])
    it(`of ${size} follows the lone member's curve with bit-identical replicas and a complete audit`, async () => {
      const simulation = await Simulation.ring(size);
      await simulation.untilFinished();
      await expectGoodEnd(simulation);
      for (const { job } of simulation.tabs)
        expect(job.snapshot(0).validations.map(({ step }) => step)).toEqual([10, 20, 30, 40]);
      const results = await simulation.wait(Promise.all(simulation.tabs.map(({ job }) => job.result())));
      expect(results.reduce((sum, { self }) => sum + self.samples, 0)).toBe(64 * 40);
      expect(results.map(({ self }) => self.rank)).toEqual(simulation.tabs.map(({ index }) => index));
      simulation.end();
    });

  it("learns: the loss falls by more than half", async () => {
    const losses = await loneCurve();
    expect(losses[39]!).toBeLessThan(losses[0]! / 2);
  });

  it("reduces a model of several buckets", async () => {
    const spec = { steps: 3, validateEvery: 0 };
    const simulation = await Simulation.ring(2, { elements: 600_000, spec });
    await simulation.untilFinished();
    await expectGoodEnd(simulation);
    const [first] = await simulation.wait(Promise.all(simulation.tabs.map(({ job }) => job.result())));
    // 2 (N - 1) / N of gradients and metric sums in each of 3 steps, and 3 sums of the one validation, of which the
    // first of two members has 1 and 2 in its two segments.
    expect(first!.self.gradientBytesSent).toBe(3 * 600_004 * 4 + 12);
    simulation.end();
  });

  it("takes a member in at step 20, with weights and momentum", async () => {
    const simulation = new Simulation();
    const first = simulation.create();
    const second = await simulation.watch(first);
    await simulation.untilStep(20);
    await simulation.wait(second.job.join());
    await simulation.untilFinished();
    await expectGoodEnd(simulation);
    expect(second.job.audit()[0]!.step).toBeGreaterThanOrEqual(20);
    expect(second.job.audit()[0]!.step).toBeLessThan(30);
    simulation.end();
  });

  it("goes on with one less when a member leaves, and takes it in again", async () => {
    const simulation = await Simulation.ring(3);
    const [, second] = simulation.tabs;
    await simulation.untilStep(10);
    await simulation.wait(second!.job.leave());
    expect(second!.job.snapshot(0).phase.kind).toBe("left");
    const left = simulation.step(simulation.tabs[0]!);
    await simulation.untilStep(left + 5);
    expect(second!.job.audit().at(-1)!.step).toBeLessThan(left + 1);
    await simulation.wait(second!.job.join());
    expect(simulation.members).toHaveLength(3);
    await simulation.untilFinished();
    await expectGoodEnd(simulation);
    simulation.end();
  });

  it("goes on when the coordinator leaves, and when it is killed", async () => {
    for (const way of ["leave", "kill", "close"] as const) {
      const simulation = await Simulation.ring(3);
      const [first, second] = simulation.tabs;
      await simulation.untilStep(10);
      if (way === "leave") await simulation.wait(first!.job.leave());
      else if (way === "kill") simulation.kill(first!);
      else {
        first!.job.close();
        first!.alive = false;
      }
      await simulation.untilStep(12);
      await simulation.until(() => simulation.rankOf(second!) === 0, "the second takes over");
      await simulation.untilFinished();
      await expectGoodEnd(simulation, way);
      simulation.end();
    }
  });

  it("ends up with one member after the others are killed at once", async () => {
    const simulation = await Simulation.ring(4);
    await simulation.untilStep(15);
    for (const tab of simulation.tabs.slice(0, 3)) simulation.kill(tab);
    await simulation.untilFinished();
    expect(simulation.members.map(({ index }) => index)).toEqual([3]);
    await expectGoodEnd(simulation);
    simulation.end();
  });

  it("takes in two at once, and lets two go at once", async () => {
    const simulation = new Simulation();
    const first = simulation.create();
    const others = [await simulation.watch(first), await simulation.watch(first)];
    await simulation.wait(Promise.all(others.map(({ job }) => job.join())));
    expect(simulation.members).toHaveLength(3);
    await simulation.untilStep(20);
    await simulation.wait(Promise.all(others.map(({ job }) => job.leave())));
    expect(simulation.members).toHaveLength(1);
    await simulation.untilFinished();
    await expectGoodEnd(simulation);
    simulation.end();
  });

  it("lets a joiner in although the coordinator dies while it joins", async () => {
    for (let events = 0; events < 60; events += 4) {
      const simulation = await Simulation.ring(2);
      const joiner = await simulation.watch(simulation.tabs[0]!);
      await simulation.clock.advance(100);
      const joined = joiner.job.join();
      await simulation.events(events);
      simulation.kill(simulation.tabs[0]!);
      await simulation.wait(joined);
      await simulation.untilFinished();
      expect(simulation.members.map(({ index }) => index).sort(), `after ${events} events`).toEqual([1, 2]);
      await expectGoodEnd(simulation, `after ${events} events`);
      simulation.end();
    }
  });

  it("stands still for everyone when anyone pauses, and goes on when anyone resumes", async () => {
    const simulation = await Simulation.ring(3);
    const [first, second, third] = simulation.tabs;
    await simulation.untilStep(10);
    await simulation.wait(third!.job.pause("Lunch."));
    await simulation.clock.advance(500);
    for (const { job } of simulation.tabs)
      expect(job.snapshot(0).phase).toEqual({ kind: "paused", by: "tab 2", reason: "Lunch." });
    const steps = simulation.tabs.map((tab) => simulation.step(tab));
    expect(new Set(steps).size).toBe(1);
    await simulation.clock.advance(60_000);
    expect(simulation.tabs.map((tab) => simulation.step(tab))).toEqual(steps);
    // Joining and leaving work all the same.
    await simulation.join(second!);
    await simulation.wait(first!.job.leave());
    await simulation.wait(second!.job.resume());
    await simulation.untilFinished();
    await expectGoodEnd(simulation);
    simulation.end();
  });

  it("stops for everyone and for good", async () => {
    const simulation = await Simulation.ring(2);
    const watcher = await simulation.watch(simulation.tabs[0]!);
    await simulation.untilStep(10);
    await simulation.wait(simulation.tabs[1]!.job.stop());
    await simulation.clock.advance(1_000);
    for (const { job } of simulation.tabs) expect(job.snapshot(0).phase).toEqual({ kind: "stopped", by: "tab 1" });
    const step = simulation.step(simulation.tabs[0]!);
    expect(step).toBeLessThan(16);
    await expect(simulation.tabs[0]!.job.resume()).rejects.toThrow("The job was stopped by tab 1.");
    await expect(simulation.wait(watcher.job.join())).rejects.toThrow("The job was stopped by tab 1.");
    expectSameCurve(simulation.tabs[0]!.job.snapshot(0).losses, (await loneCurve()).slice(0, step));
    simulation.end();
  });

  it("shows a watcher the curve from the beginning, and who trains", async () => {
    const simulation = await Simulation.ring(2, { spec: { steps: 60 } });
    await simulation.untilStep(30);
    const watcher = await simulation.watch(simulation.tabs[1]!);
    await simulation.untilFinished();
    await simulation.clock.advance(5_000);
    const { losses, validations, members, phase, step, watchers } = watcher.job.snapshot(0);
    const member = simulation.tabs[1]!.job.snapshot(0);
    expect(losses).toEqual(member.losses);
    expect(validations).toEqual(member.validations);
    expect(members.map(({ name, rank, share }) => ({ name, rank, share }))).toEqual([
      { name: "tab 0", rank: 0, share: 0.5 },
      { name: "tab 1", rank: 1, share: 0.5 },
    ]);
    expect({ phase: phase.kind, step, watchers }).toEqual({ phase: "finished", step: 60, watchers: 1 });
    await expect(simulation.wait(watcher.job.join())).rejects.toThrow("The training is finished");
    simulation.end();
  });

  it("runs in real time too", async () => {
    const hub = new InProcessHub();
    const simulated = new Simulation();
    const { manifest, spec } = simulated;
    const first = hub.join(memberId("a".repeat(32)));
    const second = hub.join(memberId("b".repeat(32)));
    const common = {
      name: "",
      gpu: { vendor: "", architecture: "", description: "" },
      makeReplica: async () => new SoftmaxReplica({ spec, clock: realClock, compute: () => 1 }),
    };
    const maker = JobMember.create({ ...common, network: first, manifest, waitFor: 2 });
    await maker.started;
    const firstLink = hub.connect(second.self, first.self);
    const hash = await manifestHash(manifest);
    const joiner = await JobMember.watch({ ...common, network: second, firstLink, manifestHash: hash });
    await joiner.join();
    const finished = Promise.all(
      [maker, joiner].map(
        (job) =>
          new Promise<void>((resolve) => {
            job.onChange = () => {
              if (job.snapshot(0).phase.kind === "finished") resolve();
            };
          }),
      ),
    );
    await finished;
    const results = await Promise.all([maker.result(), joiner.result()]);
    expect(results[0]!.self.weightsHash).toBe(results[1]!.self.weightsHash);
    expectSameCurve(results[1]!.losses, await loneCurve());
    maker.close();
    joiner.close();
  });

  it("lets a tab think better of joining while it loads the model", async () => {
    const simulation = new Simulation();
    const tab = await simulation.watch(simulation.create());
    const joining = tab.job.join();
    await tab.job.leave();
    await expect(simulation.wait(joining)).rejects.toThrow("left before it was in the ring");
    await simulation.clock.advance(200);
    expect(tab.job.snapshot(0).phase.kind).toBe("left");
    await simulation.wait(tab.job.join());
    expect(simulation.rankOf(tab)).toBe(1);
    simulation.end();
  });

  it("tells a watcher when nobody is left", async () => {
    const simulation = new Simulation();
    const first = simulation.create();
    const watcher = await simulation.watch(first);
    await simulation.untilStep(5);
    simulation.kill(first);
    await simulation.clock.advance(100);
    expect(watcher.job.snapshot(0).phase).toMatchObject({ kind: "failed", message: expect.stringContaining("Nobody") });
    watcher.job.close();
  });
});
