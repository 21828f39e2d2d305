import { describe, expect, it } from "vitest";
import { seededRandom } from "../base/seededRandom";
import { expectGoodEnd } from "./testing/checks";
import { Simulation, type Tab } from "./testing/simulation";

describe("a job in which a member is killed", () => {
  const spec = { steps: 5, validateEvery: 2 };
  for (const victim of [0, 1, 2])
    it(`(rank ${victim} of 3) loses, repeats and invents no step, at whatever message it happens`, async () => {
      // A run of its own tells how many messages and timers there are.
      const whole = await Simulation.ring(3, { spec });
      let events = 0;
      await whole.clock.runUntil(() => {
        events += 1;
        return whole.members.every((tab) => tab.job.snapshot(0).phase.kind === "finished");
      });
      whole.end();
      for (let event = victim % 2; event <= events; event += 2) {
        const simulation = await Simulation.ring(3, { spec });
        await simulation.events(event);
        simulation.kill(simulation.tabs[victim]!);
        await simulation.untilFinished();
        expect(simulation.members, `event ${event}`).toHaveLength(2);
        await expectGoodEnd(simulation, `event ${event}`);
        simulation.end();
      }
    });
});

describe("a job on a bad day", () => {
  const seeds = Number(process.env.RINGLET_SEEDS ?? 100);
  const first = Number(process.env.RINGLET_FIRST_SEED ?? 1);
  for (let block = 0; block < seeds; block += 25)
    it(`follows the lone member's curve, seeds ${first + block} to ${first + Math.min(block + 25, seeds) - 1}`, async () => {
      for (let seed = first + block; seed < first + Math.min(block + 25, seeds); seed += 1)
        await badDay(seed).catch((error: unknown) => {
          throw new Error(`seed ${seed}: ${error instanceof Error ? error.stack : String(error)}`);
        });
    });
});

/** Tabs come, go, crash, pause and lose links at random moments, but for one member that stays. */
async function badDay(seed: number): Promise<void> {
  const random = seededRandom(seed);
  const pick = <Item>(items: readonly Item[]): Item | undefined => items[Math.floor(random() * items.length)];
  const simulation = await Simulation.ring(1 + Math.floor(random() * 4), {
    seed,
    latency: [1, 1 + random() * 30],
    spec: { steps: 30, validateEvery: 7 },
    compute: (member, samples) => 2 + samples * (0.1 + (member % 3) * 0.2),
  });
  const wishes: Promise<unknown>[] = [];
  // What was asked of a tab that dies meanwhile may fail.
  const wish = (promise: Promise<unknown>) => wishes.push(promise.catch(() => {}));
  const leaving = new Set<Tab>();
  for (let count = 2 + Math.floor(random() * 6); count > 0; count -= 1) {
    await simulation.clock.advance(random() * 250);
    const { members } = simulation;
    const tab = pick(members);
    const watchers = simulation.tabs.filter((other) => other.alive && !members.includes(other));
    if (tab === undefined) break;
    const othersStay = members.some((other) => other !== tab && !leaving.has(other));
    const kind = random();
    if (kind < 0.3) {
      if (simulation.tabs.length >= 7) continue;
      // Who opens the link may find nobody there any more.
      const watcher = await simulation.watch(tab).catch(() => null);
      if (watcher !== null) wish(watcher.job.join());
    } else if (kind < 0.5) {
      if (othersStay) simulation.kill(tab);
    } else if (kind < 0.65) {
      if (!othersStay) continue;
      leaving.add(tab);
      wish(tab.job.leave().then(() => leaving.delete(tab)));
    } else if (kind < 0.75) {
      const watcher = pick(watchers);
      if (watcher !== undefined) wish(watcher.job.join());
    } else if (kind < 0.9) {
      wish(tab.job.pause("A test."));
      await simulation.clock.advance(random() * 300);
      const other = pick(simulation.members);
      if (other !== undefined) wish(other.job.resume());
    } else {
      const other = pick(members.filter((member) => member !== tab));
      // A ring that is cut in two goes on as two, so a third must be there, and time for it to help.
      if (other !== undefined && members.length > 2) {
        simulation.hub.cut(tab.id, other.id);
        await simulation.clock.advance(1_000);
      }
    }
  }
  await simulation.clock.advance(60_000);
  for (const tab of simulation.members)
    if (tab.job.snapshot(0).phase.kind === "paused") await simulation.wait(tab.job.resume());
  await simulation.untilFinished();
  await simulation.wait(Promise.all(wishes));
  await expectGoodEnd(simulation);
  simulation.end();
}
