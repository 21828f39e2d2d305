import { Command } from "commander";
import { integerFrom, numberFrom } from "./options";
import { UserError } from "./userError";

interface SimulateOptions {
  readonly seed?: number;
  readonly seeds: number;
  readonly peers: readonly number[];
  readonly bandwidth: number;
  readonly latency: number;
  readonly modelMb: number;
  readonly chunkKb: number;
}

/** `ringlet simulate`: the collectives on a simulated network, in virtual time. */
export function simulateCommand(): Command {
  return new Command("simulate")
    .description(
      "Run the gradients' all-reduce on a simulated network of many members and print its time; or replay a seed of the tests.",
    )
    .option(
      "--peers <list>",
      "members: a number, a list such as 8,64,512, or 8..1024 for its doublings",
      peersFrom,
      [8, 16, 32, 64],
    )
    .option("--bandwidth <MB/s>", "what each member can send, and receive", numberFrom("--bandwidth", 0.001), 10)
    .option("--latency <ms>", "of every link, one way", numberFrom("--latency", 0, 60_000), 10)
    .option("--model-mb <MB>", "gradients reduced in a step", numberFrom("--model-mb", 0.001, 1024), 10)
    .option("--chunk-kb <KiB>", "bytes of a chunk", numberFrom("--chunk-kb", 0.0625, 262_144), 63)
    .option("--seed <n>", "replay this seed of the collectives' tests instead", integerFrom("--seed", 0))
    .option("--seeds <n>", "how many seeds, from --seed on", integerFrom("--seeds", 1), 1)
    .addHelpText(
      "after",
      "\nTimes are virtual: they follow from bandwidth and latency alone, and the members' code is the one that trains.\n\n" +
        "Examples:\n  ringlet simulate --peers 8..1024 --bandwidth 10 --latency 20 --model-mb 10\n  ringlet simulate --seed 17",
    )
    .action(async (options: SimulateOptions) => {
      if (options.seed === undefined) await printScaling(options);
      else await replay(options.seed, options.seeds);
    });
}

const mostPeers = 1024;

/** For commander: reads "64", "8,64" or "8..1024". */
function peersFrom(text: string): number[] {
  const refuse = () =>
    new UserError(
      `--peers takes numbers of 1 to ${mostPeers}, such as 64, 8,64,512 or 8..1024, not ${JSON.stringify(text)}.`,
      2,
    );
  const isCount = (value: number) => Number.isInteger(value) && value >= 1 && value <= mostPeers;
  const range = /^(\d+)\.\.(\d+)$/.exec(text);
  if (range === null) {
    const list = text.split(",").map((part) => (/^\d+$/.test(part) ? Number(part) : Number.NaN));
    if (!list.every(isCount)) throw refuse();
    return list;
  }
  const [from, to] = [Number(range[1]), Number(range[2])];
  if (!isCount(from) || !isCount(to) || from > to) throw refuse();
  const list: number[] = [];
  for (let peers = from; peers < to; peers *= 2) list.push(peers);
  return [...list, to];
}

const columns = ["peers", "step", "bound", "efficiency", "MB sent/member", "bound MB", "frames/member"] as const;

async function printScaling({ peers, bandwidth, latency, modelMb, chunkKb }: SimulateOptions): Promise<void> {
  // Loaded here, since every command would wait for it otherwise.
  const { simulateScaling } = await import("../distributed/simulation/scaling");
  console.log(
    `Simulated: one all-reduce of ${modelMb} MB in a ring, ${bandwidth} MB/s up and down per member, ${latency} ms a hop, chunks of ${chunkKb} KiB.\n`,
  );
  console.log(columns.map((name) => name.padStart(widthOf(name))).join(""));
  for (const count of peers) {
    const result = await simulateScaling({
      peers: count,
      bytesPerSecond: bandwidth * 1e6,
      latencyMilliseconds: latency,
      modelBytes: modelMb * 1e6,
      chunkBytes: 4 * Math.round(chunkKb * 256),
    });
    const cells = [
      String(result.peers),
      seconds(result.stepMilliseconds),
      seconds(result.boundMilliseconds),
      `${(result.efficiency * 100).toFixed(1)}%`,
      (result.totalBytes / 1e6).toFixed(3),
      (result.boundBytes / 1e6).toFixed(3),
      String(result.frames),
    ];
    console.log(cells.map((cell, index) => cell.padStart(widthOf(columns[index]!))).join(""));
  }
  console.log(
    "\nThe bound is 2 (N - 1) / N of the model at full bandwidth. A ring stays near it while a segment, 1/N of the model,\n" +
      "takes longer on the line than a hop's latency; beyond that each of its 2 (N - 1) hops costs the latency.",
  );
}

const widthOf = (name: string) => Math.max(name.length + 2, 11);

const seconds = (milliseconds: number) =>
  milliseconds < 1000 ? `${milliseconds.toFixed(0)} ms` : `${(milliseconds / 1000).toFixed(2)} s`;

async function replay(first: number, count: number): Promise<void> {
  const { simulateSeed } = await import("../distributed/simulation/seed");
  let failed = 0;
  for (let seed = first; seed < first + count; seed += 1) {
    const { problems, story } = await simulateSeed(seed);
    if (problems.length > 0) failed += 1;
    if (count === 1 || problems.length > 0) console.log(story.join("\n"));
  }
  if (count > 1) console.log(`${count - failed} of ${count} seeds as they should be.`);
  if (failed > 0) throw new UserError(`${failed === 1 ? "A seed" : `${failed} seeds`} failed.`);
}
