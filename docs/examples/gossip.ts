/**
 * A collective of one's own, made of messages: a gossip average. In every round each rank exchanges its values with one neighbour on a ring, to
 * the right and to the left in turn, and both take the mean of the two. Nobody waits for everybody, and all come ever closer to the mean of all.
 *
 *     npx ringlet run docs/examples/gossip.ts --peers 4 -- --rounds 40
 */
import { dist } from "ringlet";

/**
 * Replaces `values` by about the mean over all ranks of the group. An even number of ranks pairs up wholly in each round; of an odd number one rests.
 * @param tag tells its messages apart from others that the same ranks exchange.
 */
async function gossipAverage(
  values: Float32Array<ArrayBuffer>,
  rounds: number,
  group = dist.getProcessGroup(),
  tag = 7,
): Promise<void> {
  const { rank, worldSize } = group;
  const theirs = new Float32Array(values.length);
  for (let round = 0; round < rounds; round++) {
    // In even rounds (0, 1), (2, 3), ... pair up; in odd ones (1, 2), (3, 4), ..., and around the ring where it is even.
    const goesRight = rank % 2 === round % 2;
    const partner = goesRight ? rank + 1 : rank - 1;
    const isPaired = worldSize % 2 === 0 ? worldSize > 1 : partner >= 0 && partner < worldSize;
    if (!isPaired) continue;
    const peer = (partner + worldSize) % worldSize;
    // Both sides send and receive at once; one after the other would wait for each other for ever.
    const works = group.batchIsendIrecv([
      { op: "isend", values, peer, tag },
      { op: "irecv", values: theirs, peer, tag },
    ]);
    for (const work of works) await work.wait();
    for (let i = 0; i < values.length; i++) values[i] = ((values[i] ?? 0) + (theirs[i] ?? 0)) / 2;
  }
}

const option = (name: string, otherwise: number) => {
  const at = dist.env.arguments.indexOf(name);
  return at < 0 ? otherwise : Number(dist.env.arguments[at + 1]);
};

await dist.initProcessGroup();
const rank = dist.getRank();
const worldSize = dist.getWorldSize();
const values = Float32Array.of(rank, 10 * rank);
await gossipAverage(values, option("--rounds", 40));

// What the exact collective gives, for comparison.
const mean = Float32Array.of(rank, 10 * rank);
await dist.allReduce(mean, "avg").wait();
const worst = Float32Array.of(Math.max(...values.map((value, i) => Math.abs(value - (mean[i] ?? 0)))));
await dist.allReduce(worst, "max").wait();
if (rank === 0) {
  console.log(`the mean over ${worldSize} ranks is ${mean.join(", ")}`);
  console.log(`gossip came within ${(worst[0] ?? 0).toExponential(1)} of it on every rank`);
}
await dist.barrier().wait();
dist.destroyProcessGroup();
