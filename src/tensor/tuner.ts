import { noGrad, recordApart, storageOf } from "./apply";
import { matmul } from "./operators/matrix";
import { transpose } from "./operators/views";
import type { Recording } from "./recording";
import { enqueue, type Runtime } from "./runtime";
import type { Shape } from "./shape";
import { newStorage } from "./storage";
import { Tensor } from "./tensor";
import { defaultTuningStore, type TuningStore } from "./tuningStore";
import type { VariantExample, VariantSite } from "./variants";

export interface TuneOptions {
  /** How long a loop of a kernel runs for one measurement: well above what clocks round to. Default: 50. */
  readonly milliseconds?: number;
  /** Measurements of each variant, of which the shortest counts. Default: 3. */
  readonly rounds?: number;
  /** Where choices are kept. Default: IndexedDB; in Node the process's memory. */
  readonly store?: TuningStore;
}

/** What was measured at one site. */
export interface Tuned {
  /** The kernel and its sizes. */
  readonly site: string;
  readonly variant: string;
  /** Of one run, by variant. */
  readonly milliseconds: { readonly [variant: string]: number };
}

/** Another variant than the usual one must save this part of its time: less may be noise. */
const leastGain = 0.05;

/**
 * Times the variants of the kernels that ran so far (those of matrix products) at the sizes that they ran at, and takes
 * the fastest from now on. Run a step before it. The choices are kept by adapter: where they are known, nothing is
 * measured. All variants accumulate in the same order, so results keep their bits. Takes a few seconds, in which the GPU
 * does nothing else.
 *
 * @returns what was measured now.
 */
export async function tune(options: TuneOptions = {}): Promise<Tuned[]> {
  const { store = defaultTuningStore() } = options;
  return enqueue(async (on) => {
    const { chosen, seen } = on.variants;
    const { vendor, architecture, description } = on.device.info;
    const adapter = [vendor, architecture, description].join(" ").trim() || "unknown adapter";
    for (const [key, name] of Object.entries((await store.load(adapter)) ?? {})) chosen.set(key, name);
    const tuned: Tuned[] = [];
    for (const site of seen.values()) if (!chosen.has(site.key)) tuned.push(await measured(on, site, options));
    for (const { site, variant } of tuned) chosen.set(site, variant);
    if (tuned.length > 0) await store.save(adapter, Object.fromEntries(chosen));
    on.forgetPlans();
    return tuned;
  });
}

async function measured(
  on: Runtime,
  site: VariantSite,
  { milliseconds = 50, rounds = 3 }: TuneOptions,
): Promise<Tuned> {
  const shortest = new Map<string, number>();
  const recording = exampleOf(site.example);
  const { variants } = on;
  for (let round = 0; round < rounds; round++)
    for (const name of site.names) {
      variants.forced = name;
      // The plan is made at once.
      const rehearsal = on.rehearse(recording);
      variants.forced = null;
      const { run, end } = await rehearsal;
      shortest.set(name, Math.min(shortest.get(name) ?? Number.POSITIVE_INFINITY, await timeOf(on, run, milliseconds)));
      end();
    }
  recording.unpin();
  for (const { memory } of [...recording.leaves.values(), ...recording.outputs.values()]) memory.release();
  const [fastest, time] = [...shortest].reduce((best, one) => (one[1] < best[1] ? one : best));
  const isWorthIt = time < (1 - leastGain) * shortest.get(site.usual)!;
  return {
    site: site.key,
    variant: isWorthIt ? fastest : site.usual,
    milliseconds: Object.fromEntries(shortest),
  };
}

/** The milliseconds of one run, from a loop that takes long enough to be measured. */
async function timeOf({ device }: Runtime, run: () => void, milliseconds: number): Promise<number> {
  run();
  device.recorder.submit();
  await device.work.wait(device.gpu.queue.onSubmittedWorkDone());
  for (let count = 1; ; count *= 2) {
    const start = performance.now();
    for (let i = 0; i < count; i++) run();
    device.recorder.submit();
    await device.work.wait(device.gpu.queue.onSubmittedWorkDone());
    const taken = performance.now() - start;
    device.check();
    if (taken >= milliseconds || count >= 2 ** 16) return taken / count;
  }
}

/** Records what variants are timed on. */
function exampleOf({ layout, m, n, k, batches }: VariantExample): Recording {
  const operand = (rows: number, columns: number, rowsAreContiguous: boolean): Tensor =>
    rowsAreContiguous ? zeros([batches, rows, columns]) : transpose(zeros([batches, columns, rows]), -1, -2);
  const { recording } = recordApart(() =>
    noGrad(() => storageOf(matmul(operand(m, k, layout[0] === "N"), operand(k, n, layout[1] === "N")))),
  );
  return recording;
}

/** In memory of its own, so that its kernel reads it. */
function zeros(shape: Shape): Tensor {
  const length = shape.reduce((product, size) => product * size, 1);
  const storage = newStorage(length, `an operand of shape [${shape.join(", ")}] to time kernels with`);
  return new Tensor(shape, "float32", { kind: "storage", storage }, false, null);
}
