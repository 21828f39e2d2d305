import { beforeEach, expect, test } from "vitest";
import { takeRecording } from "./apply";
import { Graph, type Node } from "./graph";
import { accumulate_, add, clamp, crossEntropy, linear, mul, relu, sum, tensor, transpose, zeros } from "./index";

beforeEach(() => {
  takeRecording();
});

/** A step of a small model, recorded without any device. */
function recordStep(rows: number, scale: number) {
  const x = tensor(new Float32Array(rows * 3).fill(1), { shape: [rows, 3] });
  const w = tensor([[1, 2, 3]], { requiresGrad: true });
  const total = zeros([1]);
  const loss = mul(crossEntropy(relu(linear(x, w)), tensor(new Int32Array(rows))), scale);
  loss.backward();
  accumulate_(total, loss.detach().reshape(1));
  return takeRecording();
}

test("a step is recorded without a device, as plain data that JSON carries", () => {
  const { nodes } = recordStep(4, 0.5).graph;
  expect(nodes.length).toBeGreaterThan(10);
  expect(JSON.parse(JSON.stringify(nodes))).toEqual(nodes);
  for (const [index, node] of nodes.entries()) for (const input of node.inputs) expect(input).toBeLessThan(index);
});

test("equal steps have one structure, whatever their scalars and data; another shape has another", () => {
  const first = recordStep(4, 0.5).structure;
  const isFirst = ({ structure }: ReturnType<typeof recordStep>) => structure.equals(first);
  expect(isFirst(recordStep(4, 0.5))).toBe(true);
  expect(isFirst(recordStep(4, 0.125))).toBe(true);
  expect(isFirst(recordStep(5, 0.5))).toBe(false);
});

test("what survives is part of the structure", () => {
  const build = (keep: boolean) => {
    const a = add(tensor([1]), 2);
    const b = add(a, 3);
    if (keep) a.keep();
    b.keep();
    return takeRecording().structure;
  };
  expect(build(true).equals(build(false))).toBe(false);
  expect(build(true).equals(build(true))).toBe(true);
});

test("one storage is one leaf, however often it is used", () => {
  const x = tensor([1, 2]);
  sum(add(mul(x, x), x.detach()));
  const { nodes } = takeRecording().graph;
  expect(nodes.filter(({ op }) => op === "leaf")).toHaveLength(1);
});

test("the hashes of 30,000 small graphs all differ", () => {
  const seen = new Set<number>();
  const build = (op: string, input: number, shape: number[], attribute: number | string | boolean | null) => {
    const graph = new Graph();
    const leaf: Node = { op: "leaf", inputs: [], attributes: {}, scalars: [], shape, dtype: "float32" };
    graph.add(leaf);
    graph.add(leaf);
    graph.add({ op, inputs: [input], attributes: { dim: attribute }, scalars: [], shape, dtype: "float32" });
    seen.add(graph.hash);
  };
  let count = 0;
  for (const op of ["sum", "amax", "narrow"])
    for (const input of [0, 1])
      for (const attribute of [0, 1, -1, 0.5, 2 ** 40, true, false, null, "none", "tanh"])
        for (let a = 0; a < 25; a++)
          for (let b = 0; b < 20; b++) {
            build(op, input, [a, b], attribute);
            count += 1;
          }
  expect(count).toBe(30_000);
  expect(seen.size).toBe(count);
});

test("views of views and bounds keep their attributes apart", () => {
  const build = (low: number) => {
    clamp(transpose(tensor([[1, 2]]), 0, 1), low, 1);
    return takeRecording();
  };
  const [a, b] = [build(0), build(-1)];
  expect(a.structure.equals(b.structure)).toBe(true);
  expect(a.graph.nodes.at(-1)!.scalars).toEqual([0, 1]);
  expect(b.graph.nodes.at(-1)!.scalars).toEqual([-1, 1]);
});

test("where there is no WebGPU, asking for a value is a sentence that says what to do", async () => {
  await expect(tensor([1]).add(1).item()).rejects.toThrow("This browser has no WebGPU. Use a current Chrome");
});
