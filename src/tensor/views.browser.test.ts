import { afterAll, expect, test } from "vitest";
import { PhiloxStream } from "../base/philox";
import { requestDevice } from "../gpu";
import {
  add,
  argmax,
  broadcastTo,
  cat,
  copy_,
  FlatParameters,
  grad,
  mul,
  narrow,
  permute,
  setDefaultDevice,
  sum,
  type Tensor,
  tensor,
  to,
} from "./index";

const device = await requestDevice();
setDefaultDevice(device);
afterAll(() => device.destroy());

/** A view of integers and what it holds, by index. */
interface Case {
  readonly view: Tensor;
  readonly shape: readonly number[];
  at(index: readonly number[]): number;
}

function randomView(next: (below: number) => number): Case {
  const rank = 1 + next(4);
  const shape = Array.from({ length: rank }, () => [1, 2, 3, 4, 8, 5][next(6)]!);
  const values = Float32Array.from({ length: shape.reduce((a, b) => a * b, 1) }, (_, i) => (i * 37) % 101);
  let current: Case = {
    view: tensor(values, { shape }),
    shape,
    at: (index) => values[index.reduce((offset, i, d) => offset * shape[d]! + i, 0)]!,
  };
  for (let step = next(4); step > 0; step--) {
    const { view, shape: before, at } = current;
    const kind = next(3);
    if (kind === 0) {
      const dims = before.map((_, d) => d);
      for (let d = dims.length - 1; d > 0; d--) {
        const other = next(d + 1);
        [dims[d], dims[other]] = [dims[other]!, dims[d]!];
      }
      current = {
        view: permute(view, dims),
        shape: dims.map((d) => before[d]!),
        at: (index) => at(before.map((_, d) => index[dims.indexOf(d)]!)),
      };
    } else if (kind === 1) {
      const dim = next(before.length);
      const start = next(before[dim]!);
      const length = 1 + next(before[dim]! - start);
      current = {
        view: narrow(view, dim, start, length),
        shape: before.with(dim, length),
        at: (index) => at(index.with(dim, index[dim]! + start)),
      };
    } else {
      const larger = before.map((size) => (size === 1 ? 1 + next(4) : size));
      current = {
        view: broadcastTo(view, larger),
        shape: larger,
        at: (index) => at(index.map((i, d) => (before[d] === 1 ? 0 : i))),
      };
    }
  }
  return current;
}

function* indicesOf(shape: readonly number[]): Generator<number[]> {
  if (shape.length === 0) yield [];
  else for (let i = 0; i < shape[0]!; i++) for (const rest of indicesOf(shape.slice(1))) yield [i, ...rest];
}

test("views of views hold what they should, and operations on them see that", async () => {
  const seed = 20;
  const stream = new PhiloxStream(seed);
  let drawn = 0;
  const next = (below: number) => stream.word(drawn++) % below;
  for (let trial = 0; trial < 80; trial++) {
    const { view, shape, at } = randomView(next);
    const dims = shape.flatMap((_, d) => (next(2) === 0 ? [d] : []));
    const doubled = add(view, mul(view, 2)).keep();
    const reduced = sum(view, dims.length > 0 ? dims : null, true).keep();
    const best = argmax(view).keep();
    const where = `seed ${seed}, trial ${trial}, shape [${shape.join(", ")}], dims [${dims.join(", ")}]`;
    const elements = [...indicesOf(shape)].map((index) => ({ index, value: at(index) }));
    expect([where, ...(await view.data())]).toEqual([where, ...elements.map(({ value }) => value)]);
    expect([where, ...(await doubled.data())]).toEqual([where, ...elements.map(({ value }) => 3 * value)]);
    const over = dims.length > 0 ? dims : shape.map((_, d) => d);
    const totals = new Map<string, number>();
    for (const { index, value } of elements) {
      const key = index.map((i, d) => (over.includes(d) ? 0 : i)).join();
      totals.set(key, (totals.get(key) ?? 0) + value);
    }
    expect([where, ...(await reduced.data())]).toEqual([where, ...totals.values()]);
    const values = elements.map(({ value }) => value);
    expect([where, await best.item()]).toEqual([where, values.indexOf(Math.max(...values))]);
  }
});

test("the gradient of a view lands where the view looks, and adds up where it repeats", async () => {
  const x = tensor([[1, 2, 3]], { requiresGrad: true });
  const y = mul(
    narrow(broadcastTo(x, [2, 3]), 1, 1, 2),
    tensor([
      [1, 10],
      [100, 1000],
    ]),
  );
  const [slope] = grad(sum(y), x);
  expect(await slope!.array()).toEqual([[0, 101, 1010]]);
});

test("a long sum over two dimensions with a kept one between takes every element once", async () => {
  const [batch, channels, pixels] = [37, 3, 211];
  const x = tensor(
    Float32Array.from({ length: batch * channels * pixels }, (_, i) => i % 17),
    { shape: [batch, channels, pixels] },
  );
  const expected = [0, 0, 0];
  for (let i = 0; i < batch * channels * pixels; i++) expected[Math.floor(i / pixels) % channels]! += i % 17;
  expect(await sum(x, [0, 2]).array()).toEqual(expected);
});

test("cat joins views, and its parts get their gradients", async () => {
  const a = tensor(
    [
      [1, 2],
      [3, 4],
    ],
    { requiresGrad: true },
  );
  const joined = cat([a.t(), narrow(a, 0, 1, 1)], 0);
  const [slope] = grad(
    sum(
      mul(
        joined,
        tensor([
          [1, 2],
          [3, 4],
          [5, 6],
        ]),
      ),
    ),
    a,
  );
  slope!.keep();
  expect(await joined.array()).toEqual([
    [1, 3],
    [2, 4],
    [3, 4],
  ]);
  expect(await slope!.array()).toEqual([
    [1, 3],
    [7, 10],
  ]);
});

test("a change in place of a part of flat memory leaves its neighbours alone, whatever its size", async () => {
  for (const size of [1, 3, 4, 63, 64, 65]) {
    const [a, b] = [0, 1].map((of) => tensor(new Float32Array(size).fill(of + 1), { requiresGrad: true }));
    const flat = new FlatParameters([
      ["a", a!],
      ["b", b!],
    ]);
    copy_(a!, tensor(new Float32Array(size).fill(9)));
    const weights = await flat.readWeights();
    const second = flat.layout.entries[1]!.offset;
    expect([...weights.slice(0, second)]).toEqual([...new Array(size).fill(9), ...new Array(second - size).fill(0)]);
    expect([...weights.slice(second, second + size)]).toEqual(new Array(size).fill(2));
  }
});

test("types convert as PyTorch's do", async () => {
  expect(await to(tensor([0.5, 0, -2]), "bool").array()).toEqual([1, 0, 1]);
  expect(await to(tensor([1.9, -1.9]), "int32").array()).toEqual([1, -1]);
  expect(add(tensor(new Int32Array([7])), 1).dtype).toBe("int32");
  expect(add(tensor(new Int32Array([7])), 0.5).dtype).toBe("float32");
  expect(await add(tensor([true, false]), tensor([true, true])).array()).toEqual([2, 1]);
  expect(await sum(tensor([true, true, false])).item()).toBe(2);
  expect(await mul(tensor(new Int32Array([2 ** 30 + 1])), 1).array()).toEqual([2 ** 30 + 1]);
});
