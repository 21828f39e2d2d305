import { autocast, dist, manualSeed, nn, optim, type Tensor, tensor } from "ringlet";

// Set up: every tab runs this module, each with its rank.
await dist.initProcessGroup();
const rank = dist.getRank();
const worldSize = dist.getWorldSize();

// Data: points in a square, and whether each lies in the disc in its middle.
const points = Array.from({ length: 256 }, (_, i) => [((i * 7) % 16) / 7.5 - 1, Math.floor(i / 16) / 7.5 - 1]);
const labels = points.map(([x = 0, y = 0]) => (x * x + y * y < 0.6 ? 1 : 0));

// Define a model.
class Net extends nn.Module {
  readonly hidden = new nn.Linear(2, 16);
  readonly output = new nn.Linear(16, 2);

  forward(input: Tensor): Tensor {
    return this.output.forward(this.hidden.forward(input).tanh());
  }
}

// Wrap it: all ranks get the weights of rank 0, and average their gradients in each step, here as float16.
manualSeed(1);
const model = await dist.DistributedDataParallel.create(new Net());
model.registerCommHook(dist.fp16CompressHook);
const optimizer = new optim.AdamW(model.parameters(), { learningRate: 0.05 });
const criterion = new nn.CrossEntropyLoss();
// Small gradients would vanish in float16, so losses are scaled; an infinity anywhere makes all ranks skip the step.
const scaler = new dist.GradScaler({ initScale: 1024 });

// Train: every rank takes its part of each epoch, in batches of 32.
const sampler = new dist.DistributedSampler(points, { seed: 7 });
for (let epoch = 0; epoch < 20; epoch++) {
  sampler.setEpoch(epoch);
  const mine = [...sampler];
  const lossSum = new Float32Array(1);
  for (let start = 0; start < mine.length; start += 32) {
    const batch = mine.slice(start, start + 32);
    const input = tensor(batch.map((i) => points[i] ?? []));
    const target = tensor(Int32Array.from(batch, (i) => labels[i] ?? 0));
    optimizer.zeroGrad();
    // Mixed precision: products in float16, losses in float32, weights and their gradients in float32.
    const loss = autocast({ dtype: "float16" }, () => criterion.forward(model.forward(input), target));
    scaler.scale(loss).backward();
    await model.averageGradients();
    await scaler.step(optimizer);
    scaler.update();
    lossSum[0] = (lossSum[0] ?? 0) + (await loss.item()) * batch.length;
  }
  await dist.allReduce(lossSum).wait();
  const mean = (lossSum[0] ?? 0) / (mine.length * worldSize);
  if (rank === 0 && epoch % 5 === 4) console.log(`epoch ${epoch + 1}: loss ${mean.toFixed(4)}`);
}

// A collective of one's own: in each round every rank averages with its left neighbour, until all have nearly the mean.
async function gossipAverage(values: Float32Array<ArrayBuffer>, rounds: number): Promise<void> {
  const [left, right] = [(rank + worldSize - 1) % worldSize, (rank + 1) % worldSize];
  const received = new Float32Array(values.length);
  for (let round = 0; round < rounds && worldSize > 1; round++) {
    const works = [dist.recv(received, left), dist.send(values.slice(), right)];
    await Promise.all(works.map((work) => work.wait()));
    for (const [i, value] of received.entries()) values[i] = ((values[i] ?? 0) + value) / 2;
  }
}
const right = await model
  .forward(tensor(points))
  .argmax(1)
  .eq(tensor(Int32Array.from(labels)))
  .to("float32")
  .mean()
  .item();
const accuracy = Float32Array.of(right);
await gossipAverage(accuracy, 8);
if (rank === 0) console.log(`${(100 * (accuracy[0] ?? 0)).toFixed(1)}% of the points are told right`);

await dist.barrier().wait();
dist.destroyProcessGroup();
