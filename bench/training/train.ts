// All engines in one place, each on a GPU device of its own, train in turns.
import { finished } from "../finished";
import { spread } from "../statistics";
import { type Batch, loadBatches } from "./batches";
import { combineCounts, countsBetween, type DeviceCounts, deviceCounts, liveDeviceBytes } from "./countDevice";
import type { EngineName, StartTraining, Training } from "./engine";
import type { EngineResult, TrainingPlan, TrainingResult } from "./results";
import { initialValues, minimumBytes, parameterCount, type Workload, type WorkloadName, workloads } from "./workloads";

const engines: Readonly<Record<EngineName, () => Promise<StartTraining>>> = {
  ringlet: async () => (await import("./ringlet")).startRinglet,
  tensorflow: async () => (await import("./tensorflow")).startTensorflow,
  jax: async () => (await import("./jax")).startJax,
};

/** Losses of different engines must agree so far: rounding grows with the steps, a different computation shows at once. */
const comparison = { steps: 8, tolerance: 1e-3 };

class Contestant {
  readonly losses: number[] = [];
  readonly stepMilliseconds: number[] = [];
  readonly pageMilliseconds: number[] = [];
  readonly turnMilliseconds: number[] = [];
  firstStepMilliseconds = 0;
  #warmUp: DeviceCounts | null = null;
  #timed: DeviceCounts | null = null;
  #liveBytes = 0;

  private constructor(
    readonly engine: EngineName,
    readonly training: Training,
    private readonly before: { counts: DeviceCounts; liveBytes: number },
  ) {}

  static async start(engine: EngineName, start: () => Promise<Training>): Promise<Contestant> {
    const before = { counts: deviceCounts(), liveBytes: liveDeviceBytes() };
    return new Contestant(engine, await start(), before);
  }

  async warmUp(batches: readonly Batch[]): Promise<void> {
    for (const batch of batches) {
      const { milliseconds } = await this.#step(batch);
      if (this.losses.length === 1) this.firstStepMilliseconds = milliseconds;
    }
    this.#warmUp = countsBetween(this.before.counts, deviceCounts());
    this.#liveBytes = liveDeviceBytes() - this.before.liveBytes;
  }

  async turn(batches: readonly Batch[]): Promise<void> {
    const before = deviceCounts();
    const liveBefore = liveDeviceBytes();
    let total = 0;
    for (const batch of batches) {
      const { milliseconds, pageMilliseconds } = await this.#step(batch);
      this.stepMilliseconds.push(milliseconds);
      this.pageMilliseconds.push(pageMilliseconds);
      total += milliseconds;
    }
    this.turnMilliseconds.push(total / batches.length);
    const counts = countsBetween(before, deviceCounts());
    this.#timed = this.#timed ? combineCounts(this.#timed, counts, (x, y) => x + y) : counts;
    this.#liveBytes += liveDeviceBytes() - liveBefore;
  }

  result(): EngineResult {
    if (!this.#warmUp || !this.#timed) throw new Error("An engine's result was asked for before it ran.");
    const steps = spread(this.stepMilliseconds);
    return {
      engine: this.engine,
      firstStepMilliseconds: this.firstStepMilliseconds,
      stepMilliseconds: steps,
      stepsPerSecond: 1000 / steps.median,
      pageMilliseconds: spread(this.pageMilliseconds),
      warmUpCounts: this.#warmUp,
      countsPerStep: combineCounts(this.#timed, this.#timed, (total) => total / steps.count),
      liveBytes: this.#liveBytes,
      losses: this.losses,
    };
  }

  async #step(batch: Batch): Promise<{ readonly milliseconds: number; readonly pageMilliseconds: number }> {
    const start = performance.now();
    // What the engine does before the page's thread is free again, microtasks included.
    const free = nextTask().then(() => performance.now() - start);
    const loss = await this.training.step(batch);
    await finished(this.training.device);
    const milliseconds = performance.now() - start;
    this.losses.push(loss);
    return { milliseconds, pageMilliseconds: await free };
  }
}

/** Resolves when the thread has come to the tasks that are queued now. */
function nextTask(): Promise<void> {
  return new Promise((resolve) => {
    const { port1, port2 } = new MessageChannel();
    port1.onmessage = () => {
      port1.close();
      resolve();
    };
    port2.postMessage(null);
  });
}

/** @param origin of the bench's server. */
export async function train(
  plan: TrainingPlan,
  origin: string,
  progress: (text: string) => void,
): Promise<TrainingResult> {
  const workload = workloads[plan.workload];
  const initial = initialValues(workload, plan.seed);
  const batches = await loadBatches(
    workload.input,
    plan.warmUpSteps + plan.rounds * plan.stepsPerTurn,
    workload.classes,
    origin,
  );
  const contestants: Contestant[] = [];
  for (const engine of plan.engines) {
    progress(`${engine} warms up`);
    const start = await engines[engine]();
    const contestant = await Contestant.start(engine, () => start(plan.workload, initial));
    await contestant.warmUp(batches.slice(0, plan.warmUpSteps));
    contestants.push(contestant);
  }
  for (let round = 0; round < plan.rounds; round += 1) {
    progress(`round ${round + 1} of ${plan.rounds}`);
    const first = plan.warmUpSteps + round * plan.stepsPerTurn;
    for (const contestant of contestants) await contestant.turn(batches.slice(first, first + plan.stepsPerTurn));
  }

  const comparedSteps = Math.min(comparison.steps, batches.length);
  const largestLossDifference = lossDifference(contestants, comparedSteps);
  if (!(largestLossDifference <= comparison.tolerance)) {
    const curves = contestants.map(({ engine, losses }) => `${engine}: ${losses.slice(0, comparedSteps).join(", ")}`);
    throw new Error(
      `The engines don't compute the same ${plan.workload}: their losses differ by ${largestLossDifference}.\n${curves.join("\n")}`,
    );
  }
  return {
    workload: plan.workload,
    description: workload.description,
    multiplyAddsPerStep: workload.multiplyAdds,
    minimumBytesPerStep: minimumBytes(workload),
    parameters: parameterCount(workload),
    engines: contestants.map((contestant) => contestant.result()),
    largestLossDifference,
    comparedSteps,
    ratios: ratiosToRinglet(contestants),
  };
}

function ratiosToRinglet(contestants: readonly Contestant[]): TrainingResult["ratios"] {
  const ringlet = contestants.find(({ engine }) => engine === "ringlet");
  if (!ringlet) return [];
  return contestants
    .filter((contestant) => contestant !== ringlet)
    .map(({ engine, turnMilliseconds }) => ({
      engine,
      ratio: spread(turnMilliseconds.map((time, round) => time / ringlet.turnMilliseconds[round]!)),
    }));
}

function lossDifference(contestants: readonly Contestant[], steps: number): number {
  const [reference, ...others] = contestants;
  let largest = 0;
  for (const { losses } of others)
    for (let step = 0; step < steps; step += 1) {
      const expected = reference!.losses[step]!;
      const difference = Math.abs(losses[step]! - expected) / Math.abs(expected);
      largest = Math.max(largest, difference);
    }
  return largest;
}

/** Milliseconds from the engine's start to its first loss. */
export async function firstStep(engine: EngineName, name: WorkloadName, seed: number, origin: string): Promise<number> {
  const workload: Workload = workloads[name];
  const [batch] = await loadBatches(workload.input, 1, workload.classes, origin);
  const start = await engines[engine]();
  const contestant = await Contestant.start(engine, () => start(name, initialValues(workload, seed)));
  await contestant.warmUp([batch!]);
  return contestant.firstStepMilliseconds;
}
