import { describe, expect, it, vi } from "vitest";
import { adam } from "../optim";
import type { FrameHeader } from "../transport/link";
import { JobMember } from "./jobMember";
import { encodeMessage } from "./messages";
import { Sampler } from "./sampler";
import { expectGoodEnd, expectSameCurve, loneCurve } from "./testing/checks";
import { Simulation, type Tab } from "./testing/simulation";

vi.setConfig({ testTimeout: 60_000 });

const control: FrameHeader = { kind: "control", epoch: 1, step: 0, channel: 0, offset: 0 };
const noticesOf = (tab: Tab) =>
  tab.job
    .snapshot(0)
    .notices.map(({ text }) => text)
    .join("\n");

describe("a ring", () => {
  it("drops a member whose GPU hangs, after it failed three times at the same step", async () => {
    let hangs = false;
    const simulation = await Simulation.ring(3, {
      compute: (member) => (hangs && member === 1 ? 1e9 : 20),
    });
    await simulation.untilStep(10);
    hangs = true;
    await simulation.until(() => simulation.members.length === 2, "the hanging member is dropped");
    expect(noticesOf(simulation.tabs[0]!)).toContain("tab 1 kept the others waiting");
    expect(noticesOf(simulation.tabs[1]!)).toContain("tab 1 kept the others waiting");
    await simulation.untilFinished();
    await expectGoodEnd(simulation);
    simulation.end();
  });

  it("goes on without its coordinator when that one's GPU hangs", async () => {
    let hangs = false;
    const simulation = await Simulation.ring(3, {
      compute: (member) => (hangs && member === 0 ? 1e9 : 20),
    });
    await simulation.untilStep(10);
    hangs = true;
    await simulation.until(() => simulation.members.length === 2, "the hanging member is out");
    await simulation.untilFinished();
    await expectGoodEnd(simulation);
    simulation.end();
  });

  for (const frozen of [0, 1, 2])
    it(`goes on without rank ${frozen} when that tab hangs and its links stay`, async () => {
      const simulation = await Simulation.ring(3);
      await simulation.untilStep(10);
      simulation.freeze(simulation.tabs[frozen]!);
      await simulation.untilFinished();
      expect(simulation.members).toHaveLength(2);
      await expectGoodEnd(simulation);
      simulation.end();
    });

  for (const [a, b] of [
    [0, 1],
    [0, 2],
    [1, 2],
  ] as const)
    it(`mends the link between ranks ${a} and ${b}, with nobody lost`, async () => {
      const simulation = await Simulation.ring(3);
      await simulation.untilStep(10);
      simulation.hub.cut(simulation.tabs[a]!.id, simulation.tabs[b]!.id);
      await simulation.untilFinished();
      expect(simulation.members).toHaveLength(3);
      await expectGoodEnd(simulation);
      simulation.end();
    });

  for (const [a, b] of [
    [0, 1],
    [1, 2],
  ] as const)
    it(`drops the higher rank and tells it when the link between ${a} and ${b} can't be mended`, async () => {
      const simulation = await Simulation.ring(3);
      await simulation.untilStep(10);
      for (const { network } of simulation.tabs)
        network.dial = () => Promise.reject(new Error("The network between them is gone."));
      simulation.hub.cut(simulation.tabs[a]!.id, simulation.tabs[b]!.id);
      await simulation.untilFinished();
      expect(simulation.members).toEqual(simulation.tabs.filter((_, rank) => rank !== b));
      expect(noticesOf(simulation.tabs[b]!)).toMatch(/link/);
      expect(simulation.tabs[b]!.job.snapshot(0).phase.kind).toMatch(/watching|finished/);
      await expectGoodEnd(simulation);
      simulation.end();
    });

  it("goes on without one that hangs while it joins, at whatever message", async () => {
    for (let events = 0; events < 40; events += 4) {
      const simulation = await Simulation.ring(2);
      const joiner = await simulation.watch(simulation.tabs[0]!);
      await simulation.clock.advance(100);
      joiner.job.join().catch(() => {});
      await simulation.events(events);
      simulation.freeze(joiner);
      await simulation.untilFinished(150_000);
      expect(simulation.members).toEqual(simulation.tabs.slice(0, 2));
      await expectGoodEnd(simulation, `after ${events} events`);
      simulation.end();
    }
  });

  it("lets a member leave within seconds although its coordinator hangs", async () => {
    const simulation = await Simulation.ring(3);
    await simulation.untilStep(10);
    simulation.freeze(simulation.tabs[0]!);
    const before = simulation.clock.now();
    await simulation.wait(simulation.tabs[1]!.job.leave());
    expect(simulation.clock.now() - before).toBeLessThan(15_000);
    await simulation.untilFinished();
    expect(simulation.members).toEqual([simulation.tabs[2]]);
    await expectGoodEnd(simulation);
    simulation.end();
  });

  it("shares the batch by speed, and follows the same curve", async () => {
    const spec = { batch: 256, steps: 60 };
    const simulation = await Simulation.ring(2, {
      spec,
      compute: (member, samples) => samples * (member === 0 ? 1 : 3),
    });
    await simulation.untilFinished();
    const shares = simulation.tabs[1]!.job.snapshot(0).members.map(({ share }) => share);
    expect(shares).toEqual([0.75, 0.25]);
    await expectGoodEnd(simulation);
    simulation.end();
  });

  it("loses a member whose GPU is lost, which says so", async () => {
    const simulation = await Simulation.ring(3);
    await simulation.untilStep(10);
    simulation.tabs[1]!.replica()!.lose("The driver was reset.");
    await simulation.untilFinished();
    expect(simulation.members).toHaveLength(2);
    expect(simulation.tabs[1]!.job.snapshot(0).phase).toEqual({
      kind: "failed",
      message: "The GPU was lost. The driver was reset.",
    });
    await expectGoodEnd(simulation);
    simulation.end();
  });
});

describe("gradients that aren't finite", () => {
  it("make everyone skip the step, and the curve goes on", async () => {
    let spoiled = 0;
    const simulation = await Simulation.ring(2, {
      spoil: (member, gradients) => {
        if (member !== 1 || simulation.step(simulation.tabs[0]!) !== 10) return;
        spoiled += 1;
        gradients[3] = Number.NaN;
      },
    });
    await simulation.untilFinished();
    expect(spoiled).toBeGreaterThan(0);
    const { losses } = simulation.tabs[0]!.job.snapshot(0);
    expectSameCurve(losses.slice(0, 11), (await loneCurve()).slice(0, 11));
    expect(losses.every(Number.isFinite)).toBe(true);
    const results = await simulation.wait(Promise.all(simulation.tabs.map(({ job }) => job.result())));
    expect(results[0]!.self.weightsHash).toBe(results[1]!.self.weightsHash);
    simulation.end();
  });

  it("make a lone member skip the step as a ring does, though more steps are under way behind it", async () => {
    const spec = { optimizer: adam({ learningRate: 0.02 }) };
    const curveOf = async (size: number) => {
      const spoiled: number[] = [];
      const simulation = await Simulation.ring(size, {
        spec,
        spoil: (member, gradients, samples) => {
          // A sample of step 10's share, in whichever of the four steps under way it comes.
          const { seed, batch } = simulation.spec;
          const isTenth = new Sampler(seed, 200, batch).indices(10, 0, batch).join().includes(samples.join());
          if (member !== 0 || !isTenth) return;
          spoiled.push(gradients.length);
          gradients[3] = Number.NaN;
        },
      });
      await simulation.untilFinished();
      expect(spoiled).toHaveLength(1);
      const { losses } = simulation.tabs[0]!.job.snapshot(0);
      simulation.end();
      return losses;
    };
    const alone = await curveOf(1);
    expectSameCurve(alone, await curveOf(2));
    expect(alone.slice(11)).not.toEqual((await loneCurve(spec)).slice(11));
  });

  for (const size of [1, 2])
    it(`pause a job of ${size} after three steps in a row, with a sentence`, async () => {
      const simulation = await Simulation.ring(size, {
        spoil: (_, gradients) => {
          if (simulation.tabs.length === size && simulation.step(simulation.tabs[0]!) >= 10)
            gradients.fill(Number.POSITIVE_INFINITY);
        },
      });
      await simulation.until(
        () => simulation.tabs.every(({ job }) => job.snapshot(0).phase.kind === "paused"),
        "the job pauses",
      );
      expect(simulation.step(simulation.tabs[0]!)).toBeLessThan(20);
      for (const { job } of simulation.tabs)
        expect(job.snapshot(0).phase).toMatchObject({ kind: "paused", reason: expect.stringContaining("in a row") });
      simulation.end();
    });
});

describe("a job's members", () => {
  it("are told when weights differ", async () => {
    let lie = false;
    const simulation = await Simulation.ring(3, {
      sha256: (member, hash) =>
        lie && member === 2 ? hash.replace(/^./, (digit) => (digit === "0" ? "1" : "0")) : hash,
    });
    lie = true;
    await simulation.untilFinished();
    await simulation.clock.advance(1_000);
    for (const tab of simulation.tabs)
      expect(noticesOf(tab)).toContain("After 40 steps the weights of tab 2 differ from those of tab 0");
    simulation.end();
  });

  it("drop a peer that sends nonsense, with a sentence, and train on", async () => {
    const nonsense: ((tab: Tab, to: Tab) => void)[] = [
      (tab, to) => tab.network.links.get(to.id)?.send(control, new TextEncoder().encode("{}")),
      (tab, to) => tab.network.links.get(to.id)?.send({ ...control, kind: "state" }, new Uint8Array(8)),
      (tab, to) => tab.network.links.get(to.id)?.send({ ...control, kind: "signal" }, new Uint8Array(8)),
      (tab, to) =>
        tab.network.links.get(to.id)?.send(
          control,
          encodeMessage({
            kind: "offer",
            epoch: 1,
            what: "training",
            committed: 1,
            optimizerSteps: 1,
            skips: 0,
            lossesFrom: 0,
            losses: 1,
            validations: 0,
            elapsedMilliseconds: 0,
            bytes: 2 ** 34,
            hash: "0".repeat(64),
          }),
        ),
    ];
    const simulation = await Simulation.ring(2);
    const [first] = simulation.tabs;
    for (const send of nonsense) {
      const watcher = await simulation.watch(first!);
      await simulation.clock.advance(20);
      send(watcher, first!);
      await simulation.clock.advance(20);
      expect(first!.network.links.has(watcher.id)).toBe(false);
      expect(noticesOf(first!)).toContain(`tab ${watcher.index} is dropped`);
      watcher.job.close();
    }
    await simulation.untilFinished();
    await expectGoodEnd(simulation);
    simulation.end();
  });

  it("aren't moved by chunks and orders of someone who only watches", async () => {
    const simulation = await Simulation.ring(2);
    const watcher = await simulation.watch(simulation.tabs[0]!);
    await simulation.untilStep(5);
    for (const { id } of simulation.tabs.slice(0, 2)) {
      const link = watcher.network.links.get(id)!;
      link.send({ ...control, kind: "chunk", epoch: 3, step: 6 }, new Uint8Array(4));
      link.send(control, encodeMessage({ kind: "prepare", epoch: 900, boundary: 0, members: [], reason: "Because." }));
      link.send(control, encodeMessage({ kind: "released", epoch: 901, problem: "Because." }));
      link.send(control, encodeMessage({ kind: "trouble", epoch: 902, lost: null, sentence: "Because." }));
    }
    await simulation.untilFinished();
    expect(simulation.members).toHaveLength(2);
    await expectGoodEnd(simulation);
    simulation.end();
  });

  it("say why the model can't be loaded, and may try again", async () => {
    let problem: string | null = "The data set couldn't be fetched: 404.";
    const simulation = new Simulation({ refusal: (member) => (member === 1 ? problem : null) });
    const first = simulation.create();
    const second = await simulation.watch(first);
    await expect(simulation.wait(second.job.join())).rejects.toThrow("404");
    expect(second.job.snapshot(0).phase).toEqual({ kind: "failed", message: problem });
    problem = null;
    await simulation.wait(second.job.join());
    await simulation.untilFinished();
    await expectGoodEnd(simulation);
    simulation.end();
  });

  it("refuse a first contact that proved another job", async () => {
    const simulation = new Simulation();
    const first = simulation.create();
    await simulation.clock.advance(10);
    const stranger = simulation.hub.join(first.id.replaceAll("1", "f") as typeof first.id);
    const firstLink = simulation.hub.connect(stranger.self, first.id);
    const watching = JobMember.watch({
      network: stranger,
      firstLink,
      manifestHash: new Uint8Array(32),
      sha256: async () => "ab".repeat(32),
      name: "stranger",
      gpu: { vendor: "", architecture: "", description: "" },
      clock: simulation.clock,
      makeReplica: () => Promise.reject(new Error("never asked")),
    });
    await expect(simulation.wait(watching)).rejects.toThrow("another job than the one that it proved");
    simulation.end();
  });

  it("give predictions, an evaluation and weights while training goes on", async () => {
    for (const size of [1, 2]) {
      const simulation = await Simulation.ring(size);
      await simulation.untilStep(10);
      const { job } = simulation.tabs[0]!;
      const [digits, evaluation, state] = await simulation.wait(
        Promise.all([job.predictions([0, 7]), job.evaluate(0, 50), job.state()]),
      );
      expect(digits.map(({ index }) => index)).toEqual([0, 7]);
      expect(evaluation.count).toBe(50);
      expect(state.weights).toHaveLength(simulation.manifest.elements);
      await simulation.untilFinished();
      await expectGoodEnd(simulation);
      const csv = job.metricsCsv().trimEnd().split("\n");
      expect(csv[0]).toBe("step,loss,validation loss,validation accuracy,members,milliseconds");
      expect(csv).toHaveLength(41);
      expect(csv[10]).toMatch(new RegExp(`^9,[\\d.]+,[\\d.]+,[\\d.]+,${size},[\\d.]+$`));
      simulation.end();
    }
  });
});
