import { expect, test } from "vitest";
import { seededRandom } from "../base/seededRandom";
import { adam, OffloadedOptimizer, sgd } from "../optim";
import { idOf, makeRanks } from "./testing/ranks";
import { OptimizerShards } from "./zeroRedundancyOptimizerShards";

const length = 300;
const spec = adam({ learningRate: 0.01, weightDecay: 0.1 });

const valuesOf = (seed: number) => {
  const random = seededRandom(seed);
  return Float32Array.from({ length }, () => random() - 0.5);
};
/** Gradients of whole eighths, whose sums are exact however they are split. */
const gradientsOf = (step: number) => valuesOf(step).map((value) => Math.round(value * 512) / 64);

/** A whole optimizer's weights after each step. */
function reference(steps: number): Float32Array[] {
  const optimizer = new OffloadedOptimizer(spec, length);
  const weights = valuesOf(99);
  const all = [weights.slice()];
  for (let step = 0; step < steps; step += 1) {
    optimizer.step(weights, gradientsOf(step));
    all.push(weights.slice());
  }
  return all;
}

/** A rank's share of a step's gradients: the shares add up to them. */
function fillShare(into: Float32Array, step: number, rank: number, worldSize: number): void {
  for (const [i, value] of gradientsOf(step).entries()) into[i] = i % worldSize === rank ? value : 0;
}

test.each([1, 2, 3, 5])(
  "%s ranks take the steps of a whole optimizer, to the bit, each with its part of the state",
  async (worldSize) => {
    const { groups, settle } = makeRanks(worldSize);
    const expected = reference(4);
    const all = groups.map((group) => new OptimizerShards(spec, valuesOf(99), group, false));
    const part = Math.ceil(length / worldSize / 64) * 64;
    for (const shards of all) expect(shards.stateLength).toBe(2 * part);
    for (let step = 0; step < 4; step += 1) {
      await settle(
        Promise.all(
          all.map((shards, rank) => {
            const gradients = shards.makeGradients();
            fillShare(gradients, step, rank, worldSize);
            return shards.step(gradients, spec.learningRate);
          }),
        ),
      );
      for (const { weights } of all) expect(weights).toEqual(expected[step + 1]);
    }
  },
);

/** Trains on three ranks, one of which is killed after some milliseconds, and then on two. */
async function survive(killed: number, milliseconds: number) {
  const steps = 6;
  const { hub, groups, clock, settle } = makeRanks(3, milliseconds, 2000);
  const all = groups.map((group) => new OptimizerShards(spec, valuesOf(99), group, true));
  clock.setTimeout(() => hub.kill(idOf(killed)), milliseconds);
  const train = async (shards: OptimizerShards) => {
    while (shards.steps < steps) {
      const gradients = shards.makeGradients();
      fillShare(gradients, shards.steps, shards.group.rank, shards.group.worldSize);
      await shards.step(gradients, spec.learningRate);
    }
  };
  const left = [0, 1, 2].filter((rank) => rank !== killed);
  // What becomes of the lost one is nobody's business.
  train(all[killed]!).catch(() => {});
  const outcomes = await settle(Promise.allSettled(left.map((rank) => train(all[rank]!))));
  const before = left.map((rank) => all[rank]!.steps);
  await settle(
    Promise.all(
      left.map(async (rank) => {
        const group = groups[rank]!.newGroup(left)!;
        await all[rank]!.reform(group, left);
        await train(all[rank]!);
      }),
    ),
  );
  return { outcomes, before, weights: left.map((rank) => all[rank]!.weights) };
}

test("a part survives the sudden loss of its owner at any moment, without a step lost or taken twice", async () => {
  const expected = reference(6)[6];
  const apart = new Set<number>();
  for (const killed of [0, 1, 2])
    for (let milliseconds = 3; milliseconds < 200; milliseconds += 17) {
      const { outcomes, before, weights } = await survive(killed, milliseconds);
      apart.add(Math.abs(before[0]! - before[1]!));
      for (const outcome of outcomes)
        if (outcome.status === "rejected") expect(String(outcome.reason)).toMatch(new RegExp(`rank ${killed}\\b`, "i"));
      for (const each of weights) expect(each, `rank ${killed} lost after ${milliseconds} ms`).toEqual(expected);
    }
  // There were losses after which one of those left was a step ahead of the other.
  expect([...apart].toSorted()).toEqual([0, 1]);
});

test("without a mirror, or with the mirror lost too, it is said what is gone", async () => {
  const { hub, groups, settle } = makeRanks(3, 5, 2000);
  const all = groups.map((group) => new OptimizerShards(sgd({ momentum: 0.9 }), valuesOf(99), group, false));
  hub.kill(idOf(1));
  const failures = await settle(
    Promise.allSettled([0, 2].map((rank) => all[rank]!.reform(groups[rank]!.newGroup([0, 2])!, [0, 2]))),
  );
  for (const failure of failures)
    expect(failure).toMatchObject({
      reason: { message: expect.stringContaining("the state of part 1 is lost with rank 1; mirror was false") },
    });
});

test("the whole state moves to a world of another size", async () => {
  const expected = reference(3);
  const first = makeRanks(2);
  const two = first.groups.map((group) => new OptimizerShards(spec, valuesOf(99), group, true));
  const step = (shards: OptimizerShards, number: number) => {
    const gradients = shards.makeGradients();
    fillShare(gradients, number, shards.group.rank, shards.group.worldSize);
    return shards.step(gradients, spec.learningRate);
  };
  for (const number of [0, 1]) await first.settle(Promise.all(two.map((shards) => step(shards, number))));
  const [state] = await first.settle(Promise.all(two.map((shards) => shards.wholeState())));
  expect(state!.steps).toBe(2);
  const second = makeRanks(3);
  const three = second.groups.map((group) => new OptimizerShards(spec, new Float32Array(length), group, true));
  for (const shards of three) shards.load(two[0]!.weights, state!);
  await second.settle(Promise.all(three.map((shards) => step(shards, 2))));
  for (const { weights } of three) expect(weights).toEqual(expected[3]);
  expect(() => three[0]!.load(new Float32Array(5), state!)).toThrow("the state is of other weights than these 300");
});
