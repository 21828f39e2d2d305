import { seededRandom } from "../../base/seededRandom";
import { VirtualClock } from "../../base/virtualClock";
import { memberId } from "../../transport/memberId";
import { SimulatedHub } from "../../transport/simulated";
import { ProcessGroup } from "../processGroup";
import { reduceOps } from "../reduceOp";
import { beginCall, type Call, callKinds, describeCall, isDefined } from "./calls";

/** What goes wrong in a run. */
type Fault =
  | { readonly kind: "none" }
  /** The link breaks after so many bytes from one rank to the other. */
  | { readonly kind: "cut"; readonly from: number; readonly to: number; readonly bytes: number }
  | { readonly kind: "kill"; readonly rank: number; readonly at: number }
  /** The rank leaves in order instead of a call. */
  | { readonly kind: "leave"; readonly rank: number; readonly call: number }
  /** The rank hangs before a call, and never makes it or any other. */
  | { readonly kind: "hang"; readonly rank: number; readonly call: number }
  /** The rank brings one element more to a call. */
  | { readonly kind: "differ"; readonly rank: number; readonly call: number }
  | { readonly kind: "abort"; readonly rank: number; readonly call: number; readonly after: number };

interface Scenario {
  readonly worldSize: number;
  readonly chunkBytes: number;
  readonly bytesPerSecond: number;
  readonly latency: readonly [number, number];
  readonly stalls: { readonly chance: number; readonly milliseconds: number };
  /** Each with the ranks that make it, and whether they wait for it before the next. */
  readonly calls: readonly { readonly call: Call; readonly ranks: readonly number[]; readonly waits: boolean }[];
  readonly fault: Fault;
}

export interface SeedReport {
  readonly seed: number;
  /** What is wrong; empty when all is right. */
  readonly problems: readonly string[];
  /** The scenario and what came of it, line by line; the same at every run. */
  readonly story: readonly string[];
}

/** Longer than the slowest line with the longest stalls takes for all that can wait on it, so that only a rank that hangs runs into it. */
const timeoutMilliseconds = 600_000;
const longestMilliseconds = 30_000_000;

function pick<T>(random: () => number, list: readonly T[]): T {
  return list[Math.floor(random() * list.length)]!;
}

function makeScenario(random: () => number): Scenario {
  const integer = (from: number, to: number) => from + Math.floor(random() * (to - from + 1));
  const worldSize = integer(1, 6);
  const shortest = integer(0, 40);
  const everyone = Array.from({ length: worldSize }, (_, rank) => rank);
  const some = everyone.filter(() => random() < 0.6);
  const calls = Array.from({ length: integer(1, 7) }, (_, index) => {
    const ranks = random() < 0.25 && some.length > 0 ? some : everyone;
    const type = pick(random, ["float32", "float32", "float16", "int32", "uint32", "uint8"] as const);
    const ops = reduceOps.filter((op) => op !== "prod" && isDefined(op, type));
    const call: Call = {
      kind: pick(random, callKinds),
      index,
      type,
      op: pick(random, ops),
      length: random() < 0.15 ? 0 : integer(1, 120),
      root: integer(0, ranks.length - 1),
    };
    return { call, ranks, waits: random() < 0.5 };
  });
  return {
    worldSize,
    chunkBytes: 4 * integer(2, 50),
    bytesPerSecond: pick(random, [2000, 20_000, 1e6, Number.POSITIVE_INFINITY]),
    latency: [shortest, shortest + integer(0, 60)],
    stalls: { chance: pick(random, [0, 0, 0.02, 0.1]), milliseconds: integer(1, 3000) },
    calls,
    fault: makeFault(random, integer, worldSize, calls),
  };
}

function makeFault(
  random: () => number,
  integer: (from: number, to: number) => number,
  worldSize: number,
  calls: Scenario["calls"],
): Fault {
  const call = integer(0, calls.length - 1);
  const rank = pick(random, calls[call]!.ranks);
  const other = (rank + integer(1, Math.max(1, worldSize - 1))) % worldSize;
  const draw = random();
  if (worldSize === 1 || draw < 0.35) return { kind: "none" };
  if (draw < 0.6) return { kind: "cut", from: rank, to: other, bytes: integer(0, pick(random, [100, 1000, 6000])) };
  if (draw < 0.75) return { kind: "kill", rank, at: integer(0, 2000) };
  if (draw < 0.8) return { kind: "leave", rank, call };
  if (draw < 0.85) return { kind: "hang", rank, call };
  if (draw < 0.92) return { kind: "differ", rank, call };
  return { kind: "abort", rank, call, after: integer(0, 300) };
}

/** Kinds of which every rank that takes part must notice that one differs. */
const comparesLengths: ReadonlySet<Call["kind"]> = new Set([
  "allReduce",
  "ring",
  "doubling",
  "reduce",
  "broadcast",
  "allGather",
  "reduceScatter",
  "gather",
  "scatter",
]);

/**
 * Runs what follows from a seed: some ranks, some collectives, a network with delays and stalls, and at most one fault. Whatever happens, every
 * collective ends on every rank that lives, either with the right result or with a sentence that names a rank; without a fault all end right.
 */
export async function simulateSeed(seed: number): Promise<SeedReport> {
  const random = seededRandom(seed);
  const scenario = makeScenario(random);
  const { worldSize, fault, calls, chunkBytes, ...network } = scenario;
  const clock = new VirtualClock();
  const hub = new SimulatedHub({ clock, seed, ...network });
  const members = Array.from({ length: worldSize }, (_, rank) => memberId((rank + 1).toString(16).padStart(32, "0")));
  const networks = members.map((member) => hub.join(member));
  for (const [index, a] of members.entries()) for (const b of members.slice(index + 1)) hub.connect(a, b);
  const groups = networks.map(
    (own) => new ProcessGroup({ network: own, members, timeoutMilliseconds, chunkBytes, clock }),
  );
  const story = [
    `seed ${seed}: ${worldSize} ranks, chunks of ${chunkBytes} B, ${network.bytesPerSecond} B/s, latency ${network.latency.join("-")} ms, stalls ${network.stalls.chance} x ${network.stalls.milliseconds} ms`,
    ...calls.map(
      ({ call, ranks, waits }) =>
        `  call ${call.index}: ${describeCall(call)} by ranks ${ranks.join(", ")}${waits ? ", then wait" : ""}`,
    ),
    `  fault: ${JSON.stringify(fault)}`,
  ];
  const problems: string[] = [];
  const tell = (sentence: string) => story.push(`  ${clock.now().toFixed(2)} ms: ${sentence}`);
  if (fault.kind === "cut") hub.cutAfter(members[fault.from]!, members[fault.to]!, fault.bytes);
  if (fault.kind === "kill")
    clock.setTimeout(() => {
      tell(`rank ${fault.rank} dies`);
      hub.kill(members[fault.rank]!);
    }, fault.at);
  const later = (milliseconds: number) => new Promise<void>((resolve) => clock.setTimeout(resolve, milliseconds));

  const runCall = async (rank: number, group: ProcessGroup, call: Call): Promise<void> => {
    const differs = fault.kind === "differ" && fault.call === call.index;
    const begun = beginCall(differs && fault.rank === rank ? { ...call, length: call.length + 1 } : call, group);
    if (fault.kind === "abort" && fault.call === call.index && fault.rank === rank)
      clock.setTimeout(() => begun.works[0]?.abort("The simulation stopped it."), fault.after);
    const results = await Promise.allSettled(begun.works.map((work) => work.wait()));
    const failure = results.find((result) => result.status === "rejected");
    const where = `rank ${rank}, call ${call.index}`;
    if (failure !== undefined) {
      const sentence = failure.reason instanceof Error ? failure.reason.message : String(failure.reason);
      tell(`${where} fails: ${sentence}`);
      if (fault.kind === "none") problems.push(`${where} failed without a fault: ${sentence}`);
      if (sentence.includes("Waited") && fault.kind !== "hang")
        problems.push(`${where} found a fault by its time-out only: ${sentence}`);
      if (!/rank \d/i.test(sentence)) problems.push(`${where}: the failure names no rank: ${sentence}`);
      return;
    }
    if (differs && group.worldSize > 1 && comparesLengths.has(call.kind))
      problems.push(`${where} ended well although rank ${fault.rank} brought another length.`);
    const wrong = differs ? null : begun.check();
    tell(`${where} ${wrong === null ? "is right" : `is wrong: ${wrong}`}`);
    if (wrong !== null) problems.push(`${where}: ${wrong}`);
  };

  const runRank = async (rank: number): Promise<void> => {
    const group = groups[rank]!;
    const subgroups = calls.map(({ ranks }) => (ranks.length === worldSize ? group : group.newGroup(ranks)));
    const running: Promise<void>[] = [];
    for (const [index, { call, waits }] of calls.entries()) {
      await later(delays[rank]![index]!);
      if (fault.kind === "leave" && fault.rank === rank && fault.call === index) {
        tell(`rank ${rank} leaves`);
        group.destroy();
        break;
      }
      if (fault.kind === "hang" && fault.rank === rank && fault.call === index) {
        tell(`rank ${rank} hangs`);
        break;
      }
      const own = subgroups[index];
      if (own === null || own === undefined) continue;
      const run = runCall(rank, own, call);
      running.push(run);
      if (waits) await run;
    }
    await Promise.all(running);
  };
  const delays = members.map(() => calls.map(() => (random() < 0.3 ? random() * 500 : 0)));
  const dead = fault.kind === "kill" ? fault.rank : null;
  let living = worldSize - (dead === null ? 0 : 1);
  for (const rank of members.keys())
    void runRank(rank).then(
      () => {
        if (rank !== dead) living -= 1;
      },
      (error: unknown) => {
        problems.push(`rank ${rank} threw ${String(error)}`);
        if (rank !== dead) living -= 1;
      },
    );
  if (!(await clock.runUntil(() => living === 0, longestMilliseconds))) problems.push(`${living} ranks never ended.`);
  for (const group of groups) group.destroy();
  await clock.advance(longestMilliseconds);
  if (clock.nextDue !== null) problems.push("A timer is left after all ranks have gone.");
  tell(problems.length === 0 ? "all as it should be" : problems.join("; "));
  return { seed, problems, story };
}
