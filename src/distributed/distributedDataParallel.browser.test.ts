import { afterAll, expect, test } from "vitest";
import { requestDevice } from "../gpu";
import { Linear, MSELoss, Sequential, Tanh } from "../nn";
import { SGD } from "../optim";
import { setDefaultDevice, tensor } from "../tensor";
import { InProcessHub } from "../transport/inProcess";
import { memberId } from "../transport/memberId";
import { averageGradients, DistributedDataParallel } from "./distributedDataParallel";
import { ProcessGroup } from "./processGroup";

const device = await requestDevice();
setDefaultDevice(device);
afterAll(() => device.destroy());

/** Two ranks in this page, over in-process links. */
function makeGroups(): readonly [ProcessGroup, ProcessGroup] {
  const hub = new InProcessHub();
  const members = [memberId("1".repeat(32)), memberId("2".repeat(32))];
  const [first, second] = members.map((member) => hub.join(member));
  hub.connect(members[0]!, members[1]!);
  return [new ProcessGroup({ network: first!, members }), new ProcessGroup({ network: second!, members })];
}

const inputs = [
  [0.5, -1],
  [2, 0.25],
  [-1.5, 1],
  [0.75, 3],
];
const targets = [[1], [0], [-1], [0.5]];
const loss = new MSELoss();
const makeNet = () => new Sequential(new Linear(2, 3), new Tanh(), new Linear(3, 1));

test("tensors are reduced in place", async () => {
  const groups = makeGroups();
  const tensors = [
    tensor([
      [1, 2],
      [3, 4],
    ]),
    tensor([
      [10, 20],
      [30, 40],
    ]),
  ];
  await Promise.all(groups.map((group) => group.allReduce(tensors[group.rank]!, "avg").wait()));
  for (const values of tensors)
    expect(await values.array()).toEqual([
      [5.5, 11],
      [16.5, 22],
    ]);
  await expect(groups[0].allReduce(tensor(new Int32Array(2))).wait()).rejects.toThrow(
    "Collectives take float32 values; this tensor is int32[2].",
  );
});

test("replicas with halves of the batch train as one model with the whole batch, bit-identical to each other", async () => {
  const groups = makeGroups();
  const replicas = await Promise.all(groups.map((group) => DistributedDataParallel.create(makeNet(), group)));
  const whole = makeNet();
  whole.loadStateDict(replicas[0]!.module.stateDict());
  const optimizers = replicas.map((replica) => new SGD(replica.module.parameters(), { learningRate: 0.1 }));
  const optimizer = new SGD(whole.parameters(), { learningRate: 0.1 });
  for (let step = 0; step < 5; step += 1) {
    for (const [rank, replica] of replicas.entries()) {
      optimizers[rank]!.zeroGrad();
      const rows = [2 * rank, 2 * rank + 2] as const;
      loss.forward(replica.forward(tensor(inputs.slice(...rows))), tensor(targets.slice(...rows))).backward();
    }
    await Promise.all(replicas.map((replica) => replica.averageGradients()));
    for (const each of optimizers) each.step();
    optimizer.zeroGrad();
    loss.forward(whole.forward(tensor(inputs)), tensor(targets)).backward();
    optimizer.step();
  }
  for (const [name, parameter] of whole.stateDict()) {
    const expected = await parameter.data();
    const [first, second] = await Promise.all(replicas.map((replica) => replica.module.stateDict().get(name)!.data()));
    expect([...second!]).toEqual([...first!]);
    for (const [index, value] of expected.entries()) expect(Math.abs(first![index]! - value)).toBeLessThan(1e-6);
  }
});

test("averageGradients takes parameters that aren't packed", async () => {
  const groups = makeGroups();
  const parameters = groups.map(({ rank }) => tensor([rank + 1, 2], { requiresGrad: true }));
  for (const parameter of parameters) parameter.mul(parameter).sum().backward();
  await Promise.all(groups.map((group) => averageGradients([parameters[group.rank]!], group)));
  for (const parameter of parameters) expect(await parameter.grad!.array()).toEqual([3, 4]);
});
