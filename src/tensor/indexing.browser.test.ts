import { afterAll, expect, test } from "vitest";
import { PhiloxStream } from "../base/philox";
import { requestDevice } from "../gpu";
import * as torch from "./index";
import { type Tensor, tensor } from "./index";

const device = await requestDevice();
torch.setDefaultDevice(device);
afterAll(() => device.destroy());

const { NaN: nan, POSITIVE_INFINITY: infinity } = Number;
const integers = (...values: number[]) => tensor(Int32Array.from(values));
/** Numbers from 0 to `below`, many of them equal. */
const drawn = (length: number, below: number, stream = 1) => {
  const numbers = new PhiloxStream(5, [stream, 9]);
  return Array.from({ length }, (_, i) => Math.floor(numbers.uniform(i) * below));
};

test("sorting is stable at any length, up and down", async () => {
  for (const length of [1, 2, 31, 32, 33, 64, 97, 1009]) {
    const values = drawn(length, 20);
    const positions = values.map((_, i) => i);
    const [up, down] = [1, -1].map((sign) => positions.toSorted((a, b) => sign * (values[a]! - values[b]!) || a - b));
    const x = tensor(values);
    const [ascending, descending] = [torch.sort(x), torch.sort(x, 0, true)];
    const results = await Promise.all(
      [ascending.indices, descending.indices, ascending.values].map((result) => result.array()),
    );
    expect([length, ...results]).toEqual([length, up, down, up!.map((i) => values[i])]);
  }
});

test("sorting puts NaN last, takes both zeros for equal, and keeps integers exact", async () => {
  const x = tensor([3, nan, -infinity, 0, infinity, -0, nan, -2]);
  const [up, down, whole, kth, middle, most] = await Promise.all([
    torch.sort(x).indices.array(),
    torch.argsort(x, 0, true).array(),
    torch.sort(integers(2147483647, -2147483648, 16777217, 16777216, -1)).values.array(),
    torch.kthvalue(x, 8, 0).values.array(),
    torch.median(x, 0).indices.array(),
    torch.topk(x, 3).indices.array(),
  ]);
  expect(up).toEqual([2, 7, 3, 5, 0, 4, 1, 6]);
  expect(down).toEqual([1, 6, 4, 0, 3, 5, 7, 2]);
  expect(whole).toEqual([-2147483648, -1, 16777216, 16777217, 2147483647]);
  expect(kth).toBeNaN();
  expect(middle).toBe(1);
  expect(most).toEqual([1, 6, 4]);
});

test("a sorted matrix's gradient goes back to where its values came from", async () => {
  const x = tensor(
    [
      [3, 1, 2],
      [5, 5, 4],
    ],
    { requiresGrad: true },
  );
  torch.sort(x, 1).values.backward(
    tensor([
      [10, 20, 30],
      [40, 50, 60],
    ]),
  );
  expect(await x.grad!.array()).toEqual([
    [30, 10, 20],
    [50, 60, 40],
  ]);
});

test("entries for one place add up in the index's order, few or many, and the same bits come again", async () => {
  const [places, entries] = [7, 3001];
  const index = drawn(entries, places, 2);
  const values = drawn(entries, 1000, 3).map((x) => Math.fround(x / 7));
  const totals = Array.from({ length: places }, (_, place) =>
    values.reduce((total, value, i) => (index[i] === place ? total + value : total), 0),
  );
  const add = () => torch.indexAdd(torch.zeros([places]), 0, integers(...index), tensor(values)).data();
  const [first, again] = await Promise.all([add(), add()]);
  expect([...first]).toEqual(totals.map((total) => expect.closeTo(total, 0)));
  for (const [i, total] of totals.entries()) expect(Math.abs(first[i]! / total - 1)).toBeLessThan(1e-6);
  expect(first).toEqual(again);
});

test("rows by repeated indices: the gradient of each counts its uses, with few entries and with many", async () => {
  for (const length of [4, 500]) {
    const weight = torch.ones([10, 3], { requiresGrad: true });
    const index = Array.from({ length }, (_, i) => (i < 2 ? 3 : i % 10));
    torch.sum(torch.indexSelect(weight, 0, integers(...index))).backward();
    const uses = Array.from({ length: 10 }, (_, row) => index.filter((i) => i === row).length);
    expect(await weight.grad!.array()).toEqual(uses.map((count) => [count, count, count]));
  }
});

test("scattering along each dimension by its own indices, with few entries and with many", async () => {
  for (const entries of [5, 130])
    for (const dim of [0, 1]) {
      const shape = dim === 0 ? [entries, 3] : [3, entries];
      const at = drawn(entries * 3, 11, 4);
      const values = at.map((_, i) => i + 1);
      const base = dim === 0 ? [11, 3] : [3, 11];
      const sums = new Array<number>(33).fill(0);
      const lasts = new Array<number>(33).fill(0);
      for (let i = 0; i < at.length; i++) {
        const [row, column] = [Math.floor(i / shape[1]!), i % shape[1]!];
        const place = dim === 0 ? at[i]! * 3 + column : row * 11 + at[i]!;
        sums[place]! += values[i]!;
        lasts[place] = values[i]!;
      }
      const index = tensor(Int32Array.from(at), { shape });
      const source = tensor(values, { shape });
      const zeros = torch.zeros(base);
      const [added, put] = await Promise.all([
        torch.scatterAdd(zeros, dim, index, source).data(),
        torch.scatter(zeros, dim, index, source).data(),
      ]);
      expect([entries, dim, [...added], [...put]]).toEqual([entries, dim, sums, lasts]);
    }
});

test("an index out of range gathers NaN and scatters nowhere", async () => {
  const [gathered, scattered] = await Promise.all([
    torch.gather(tensor([1, 2]), 0, integers(1, 2, -1)).array(),
    torch.scatterAdd(tensor([1, 2]), 0, integers(0, 2, -1), tensor([10, 20, 30])).array(),
  ]);
  expect(gathered).toEqual([2, nan, nan]);
  expect(scattered).toEqual([11, 2]);
});

test("indices in brackets take what NumPy's take", async () => {
  const x = tensor(
    Float32Array.from({ length: 60 }, (_, i) => i),
    { shape: [3, 4, 5] },
  );
  const picks: Record<string, Tensor> = {
    "[1]": torch.index(x, 1, 0, -1),
    "[::2, ..., 1]": torch.index(x, torch.slice(null, null, 2), "...", 1),
    "[-1, 1:-1, [0, -1]]": torch.index(x, -1, torch.slice(1, -1), [0, -1]),
    "[[0, 2], :, [1, 3]]": torch.index(x, [0, 2], torch.slice(), [1, 3]),
    "[:, [0, 3], [1, 2]]": torch.index(x, torch.slice(), [0, 3], [1, 2]),
    "[None, 2, 5:9]": torch.index(x, null, 2, torch.slice(5, 9)),
    tensors: torch.index(x, tensor(new Int32Array([2, -3]), { shape: [2, 1] }), integers(0, -1), 0),
  };
  const values = await Promise.all(Object.values(picks).map((pick) => pick.array()));
  expect(Object.fromEntries(Object.keys(picks).map((name, i) => [name, values[i]]))).toEqual({
    "[1]": 24,
    "[::2, ..., 1]": [
      [1, 6, 11, 16],
      [41, 46, 51, 56],
    ],
    "[-1, 1:-1, [0, -1]]": [
      [45, 49],
      [50, 54],
    ],
    "[[0, 2], :, [1, 3]]": [
      [1, 6, 11, 16],
      [43, 48, 53, 58],
    ],
    "[:, [0, 3], [1, 2]]": [
      [1, 17],
      [21, 37],
      [41, 57],
    ],
    "[None, 2, 5:9]": [[]],
    tensors: [
      [40, 55],
      [0, 15],
    ],
  });
  expect(() => torch.index(x, [3])).toThrow(
    "index: there is an index 3 of dimension 0; expected integers from -3 to 2.",
  );
});

test("positions in sorted sequences, from the left and the right", async () => {
  const sequence = tensor([1, 3, 3, 5]);
  const values = tensor([0, 1, 3, 4, 5, 6, nan]);
  const [left, right, rows, sorted] = await Promise.all([
    torch.searchsorted(sequence, values).array(),
    torch.searchsorted(sequence, values, { right: true }).array(),
    torch
      .searchsorted(
        tensor([
          [1, 2, 3],
          [10, 20, 30],
        ]),
        tensor([
          [3, 0],
          [15, 40],
        ]),
      )
      .array(),
    torch.searchsorted(tensor([5, 1, 3]), 4, { sorter: integers(1, 2, 0) }).array(),
  ]);
  expect(left).toEqual([0, 0, 1, 3, 3, 4, 4]);
  expect(right).toEqual([0, 1, 3, 3, 4, 4, 4]);
  expect(rows).toEqual([
    [2, 0],
    [1, 3],
  ]);
  expect(sorted).toBe(2);
});

test("masks in brackets select entries together with other indices", async () => {
  const x = tensor(
    Float32Array.from({ length: 12 }, (_, i) => i),
    { shape: [3, 4], requiresGrad: true },
  );
  const mask = tensor([true, false, true]);
  const rows = await torch.indexAsync(x, mask);
  torch.sum(rows).backward();
  expect(await Promise.all([rows.array(), x.grad!.array()])).toEqual([
    [
      [0, 1, 2, 3],
      [8, 9, 10, 11],
    ],
    [
      [1, 1, 1, 1],
      [0, 0, 0, 0],
      [1, 1, 1, 1],
    ],
  ]);
  expect(await (await torch.indexAsync(x, mask, [1, -1])).array()).toEqual([1, 11]);
  expect(await (await torch.indexAsync(x, torch.gt(x, 8.5))).array()).toEqual([9, 10, 11]);
  expect(
    await (
      await torch.nonzero(
        tensor([
          [0, 3],
          [5, 0],
        ]),
      )
    ).array(),
  ).toEqual([
    [0, 1],
    [1, 0],
  ]);
  expect(() => torch.index(x, mask)).toThrow("index: the index of dimension 0 is bool[3]; expected int32");
});

test("what a mask or runs select, also of results of operations, and nothing", async () => {
  const x = torch.mul(tensor([1, 1, 2, 2, 2, 3, 1]), 10);
  const { output, inverse, counts } = await torch.uniqueConsecutive(x);
  expect(await Promise.all([output.array(), inverse.array(), counts.array()])).toEqual([
    [10, 20, 30, 10],
    [0, 0, 1, 1, 1, 2, 3],
    [2, 3, 1, 1],
  ]);
  expect(await (await torch.maskedSelect(x, torch.gt(x, 15))).array()).toEqual([20, 20, 20, 30]);
  expect((await torch.maskedSelect(x, torch.gt(x, 99))).shape).toEqual([0]);
  const rows = await torch.uniqueConsecutive(
    tensor([
      [1, 2],
      [1, 2],
      [1, 3],
    ]),
    0,
  );
  expect(await rows.output.array()).toEqual([
    [1, 2],
    [1, 3],
  ]);
  expect(await (await torch.repeatInterleave(tensor([5, 6, 7]), integers(2, 0, 3))).array()).toEqual([5, 5, 7, 7, 7]);
});

test("long cumulative sums and products, and their gradients, agree with float64", async () => {
  const length = 5003;
  const values = drawn(length, 200, 6).map((x) => Math.fround(1 + (x - 100) / 20_000));
  const x = tensor(values, { requiresGrad: true });
  const [sums, products] = [torch.cumsum(x, 0), torch.cumprod(x, 0)];
  torch.add(torch.mean(sums), torch.mean(products)).backward();
  const [gotSums, gotProducts, slopes] = await Promise.all([sums.data(), products.data(), x.grad!.data()]);
  let [total, product] = [0, 1];
  const exact = values.map((value) => {
    total += value;
    product *= value;
    return { total, product };
  });
  const suffixes = new Array<number>(length + 1).fill(0);
  for (let i = length - 1; i >= 0; i--) suffixes[i] = suffixes[i + 1]! + exact[i]!.product;
  for (let i = 0; i < length; i += 97) {
    expect(Math.abs(gotSums[i]! / exact[i]!.total - 1)).toBeLessThan(1e-6);
    expect(Math.abs(gotProducts[i]! / exact[i]!.product - 1)).toBeLessThan(3e-4);
    const slope = (length - i + suffixes[i]! / values[i]!) / length;
    expect(Math.abs(slopes[i]! / slope - 1)).toBeLessThan(3e-4);
  }
});

test("cumulative products past zeros have the right gradients, and second ones", async () => {
  const x = tensor([2, 0, 3, 0, 5], { requiresGrad: true });
  const [first] = torch.grad(torch.sum(torch.cumprod(x, 0)), x, { createGraph: true });
  const [second] = torch.grad(torch.sum(first!), x);
  const product = tensor([2, 0, 3], { requiresGrad: true });
  const [slopes] = torch.grad(torch.prod(product), product, { createGraph: true });
  const [curvature] = torch.grad(torch.sum(slopes!), product);
  const values = await Promise.all([first!, second!, slopes!, curvature!].map((result) => result.array()));
  // y = a + ab + abc + abcd + abcde at (2, 0, 3, 0, 5).
  expect(values[0]).toEqual([1, 8, 0, 0, 0]);
  // The sums of rows of the Hessian: for b, 1 + c + cd + ... by a, a + ad by c, ac(1 + e) by d.
  expect(values[1]).toEqual([4, 42, 2, 36, 0]);
  expect(values[2]).toEqual([0, 6, 0]);
  expect(values[3]).toEqual([3, 5, 2]);
});

test("functions are methods too", async () => {
  const x = tensor([32768, 32767, 40000]);
  const { values, indices } = x.sort(0, true);
  const [least, most, sorted, order, twice, total] = await Promise.all(
    [x.min(), x.max(0).indices, values, indices, x.repeatInterleave(2), x.cumsum(0).roll(1, 0)].map((t) => t.array()),
  );
  expect([least, most, sorted, order]).toEqual([32767, 2, [40000, 32768, 32767], [2, 0, 1]]);
  expect([twice, total]).toEqual([
    [32768, 32768, 32767, 32767, 40000, 40000],
    [105535, 32768, 65535],
  ]);
});

test("nothing at all goes through every operation that takes it", async () => {
  const none = torch.zeros([3, 0], { requiresGrad: true });
  const results = {
    cumsum: torch.cumsum(none, 1),
    sort: torch.sort(none, 1).values,
    flip: torch.flip(none, [0, 1]),
    roll: torch.roll(none, 2, 1),
    prod: torch.prod(none, 1),
    nansum: torch.nansum(none, 1),
    norm: torch.vectorNorm(none, 2, 1),
    tril: torch.tril(none),
    pad: torch.constantPadNd(none, [1, 1], 7),
    indexSelect: torch.indexSelect(none, 0, integers(2, 2)),
    scatterAdd: torch.scatterAdd(none, 1, tensor(new Int32Array(0), { shape: [3, 0] }), none),
    einsum: torch.einsum("ij,kj->ik", none, none),
    any: torch.any(none, 1),
    all: torch.all(none, 1),
  };
  const values = await Promise.all(Object.values(results).map((result) => result.array()));
  expect(Object.fromEntries(Object.keys(results).map((name, i) => [name, values[i]]))).toEqual({
    cumsum: [[], [], []],
    sort: [[], [], []],
    flip: [[], [], []],
    roll: [[], [], []],
    prod: [1, 1, 1],
    nansum: [0, 0, 0],
    norm: [0, 0, 0],
    tril: [[], [], []],
    pad: [
      [7, 7],
      [7, 7],
      [7, 7],
    ],
    indexSelect: [[], []],
    scatterAdd: [[], [], []],
    einsum: [
      [0, 0, 0],
      [0, 0, 0],
      [0, 0, 0],
    ],
    any: [0, 0, 0],
    all: [1, 1, 1],
  });
});
