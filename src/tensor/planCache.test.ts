import { expect, test } from "vitest";
import type { Node } from "./graph";
import { PlanCache } from "./planCache";
import { Structure } from "./structure";

const node = (changes: Partial<Node> = {}): Node => ({
  op: "sum",
  inputs: [0],
  attributes: { dims: [0], keepdim: false },
  scalars: [],
  shape: [3],
  dtype: "float32",
  ...changes,
});

/** A structure with a hash that others may have too. */
const structure = (changes: Partial<Node> = {}, hash = 7, outputs = [1], scalars = [2]) =>
  new Structure(hash, [node(), node(changes)], outputs, scalars);

test("equal structures share a plan, whatever their scalars' values", () => {
  const cache = new PlanCache<string>(4, () => {});
  expect(cache.get(structure({ scalars: [1] }), () => "first")).toBe("first");
  expect(cache.get(structure({ scalars: [2] }), () => "second")).toBe("first");
});

test("structures of one hash that differ anywhere have plans of their own", () => {
  const cache = new PlanCache<number>(100, () => {});
  const others = [
    structure(),
    structure({ op: "mean" }),
    structure({ inputs: [1] }),
    structure({ inputs: [0, 0] }),
    structure({ attributes: { dims: [1], keepdim: false } }),
    structure({ attributes: { dims: [0], keepdim: true } }),
    structure({ attributes: { dims: [0] } }),
    structure({ attributes: { dims: [0], keepdim: false, more: null } }),
    structure({ attributes: { dims: 0, keepdim: false } }),
    structure({ attributes: { dims: "0", keepdim: false } }),
    structure({ scalars: [1] }),
    structure({ shape: [4] }),
    structure({ dtype: "int32" }),
    structure({}, 7, [1, 2]),
    structure({}, 7, [1], []),
    structure({}, 8),
  ];
  for (const [i, other] of others.entries()) expect(cache.get(other, () => i)).toBe(i);
  for (const [i, other] of others.entries()) expect(cache.get(other, () => -1)).toBe(i);
});

test("the least recently used plan makes room, and is made again when it is needed", () => {
  const evicted: number[] = [];
  const cache = new PlanCache<number>(2, (plan) => evicted.push(plan));
  const [a, b, c] = [structure({}, 1), structure({}, 100), structure({}, 200)];
  cache.get(a, () => 0);
  cache.get(b, () => 1);
  cache.get(a, () => -1);
  cache.get(c, () => 2);
  expect(evicted).toEqual([1]);
  expect([cache.get(a, () => -1), cache.get(b, () => 3), cache.get(a, () => -1)]).toEqual([0, 3, 0]);
  expect(evicted).toEqual([1, 2]);
});
