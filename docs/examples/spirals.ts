/**
 * Two spirals, told apart by a small network that all ranks train together:
 *
 *     npx ringlet run docs/examples/spirals.ts --peers 3 -- --steps 150
 */
import { dist, manualSeed, nn, optim, tensor } from "ringlet";

await dist.initProcessGroup();
const rank = dist.getRank();
const worldSize = dist.getWorldSize();
const steps = Number(dist.env.arguments[dist.env.arguments.indexOf("--steps") + 1] ?? 150);

/** `count` points [x, y] in two interleaved spirals, and which spiral each is on. */
function spirals(count: number): { points: number[][]; labels: number[] } {
  const points: number[][] = [];
  const labels: number[] = [];
  for (let i = 0; i < count; i++) {
    const label = i % 2;
    const radius = 0.1 + 0.9 * (i / count);
    const angle = 6 * radius + Math.PI * label;
    points.push([radius * Math.cos(angle), radius * Math.sin(angle)]);
    labels.push(label);
  }
  return { points, labels };
}

// Every rank takes its part of each batch: samples rank, rank + worldSize, ...
const { points, labels } = spirals(240);
const mine = points.map((_, i) => i).filter((i) => i % worldSize === rank);
const x = tensor(mine.map((i) => points[i] ?? []));
const y = tensor(
  mine.map((i) => labels[i] ?? 0),
  { dtype: "int32" },
);

manualSeed(1);
const model = await dist.DistributedDataParallel.create(
  new nn.Sequential(new nn.Linear(2, 32), new nn.Tanh(), new nn.Linear(32, 32), new nn.Tanh(), new nn.Linear(32, 2)),
);
const optimizer = new optim.Adam(model.module.parameters(), { learningRate: 0.02 });
const criterion = new nn.CrossEntropyLoss();

for (let step = 1; step <= steps; step++) {
  optimizer.zeroGrad();
  const loss = criterion.forward(model.forward(x), y);
  loss.backward();
  await model.averageGradients();
  optimizer.step();
  if (step === 1 || step % 50 === 0) {
    const mean = new Float32Array([await loss.item()]);
    await dist.allReduce(mean, "avg").wait();
    if (rank === 0) console.log(`step ${step}: loss ${mean[0]?.toFixed(4)}`);
  }
}

const right = new Float32Array([await model.forward(x).argmax(1).eq(y).to("float32").sum().item()]);
await dist.allReduce(right).wait();
if (rank === 0) console.log(`${right[0]} of ${points.length} points are on the right spiral`);
await dist.barrier().wait();
dist.destroyProcessGroup();
