// What `npm run bench:node` measures: Ringlet alone, in Node over Dawn. Loaded through the bench's server, as shaders are.
import { describeAdapter } from "../adapter";
import { measureRows } from "../operators/measureRows";
import { operatorGroups, operatorRows } from "../operators/rows";
import type { Part } from "../options";
import { countDevices } from "../training/countDevice";
import { measureDeviceLimits } from "../training/deviceLimits";
import { plans } from "../training/plans";
import type { TrainingResult } from "../training/results";
import { train } from "../training/train";
import { workloadNames } from "../training/workloads";
import type { NodeResults } from "./results";

const repetitions = {
  full: { millisecondsPerRow: 3000, fewestRounds: 5, mostRounds: 25 },
  quick: { millisecondsPerRow: 300, fewestRounds: 1, mostRounds: 3 },
} as const;

/** @param origin of the bench's server, which has the digits. */
export async function measureInNode(
  origin: string,
  isQuick: boolean,
  parts: readonly Part[],
  progress: (text: string) => void,
): Promise<NodeResults> {
  countDevices();
  const adapter = await describeAdapter();
  progress(`adapter: ${adapter.vendor} ${adapter.architecture} ${adapter.description}`);
  const limits = await measureDeviceLimits();
  const kind = isQuick ? "quick" : "full";
  const groups = operatorGroups.filter((group) => parts.includes(group));
  const rows = operatorRows.filter(({ group }) => groups.includes(group));
  const operators = await measureRows({ rows, engines: ["ringlet"], ...repetitions[kind] }, progress);
  const training: TrainingResult[] = [];
  for (const workload of workloadNames.filter((name) => parts.includes(name))) {
    const plan = { workload, engines: ["ringlet"] as const, seed: 1, ...plans[kind][workload] };
    training.push(await train(plan, origin, (text) => progress(`${workload}: ${text}`)));
  }
  return { adapter, limits, operators, training };
}
