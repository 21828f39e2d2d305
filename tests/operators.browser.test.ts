import { describe, expect, test } from "vitest";
import { messageOf } from "../src/base/messageOf";
import type { Tensor } from "../src/tensor/index";
import { operatorTable } from "./operatorTable";
import { dtypeOf, ReferenceCall, toTensor } from "./referenceCall";
import {
  expectClose,
  type ReferenceCase,
  type ReferenceFile,
  type ReferenceTensor,
  referenceTolerance,
} from "./referenceCase";

async function fetchJson<T>(path: string): Promise<T> {
  const response = await fetch(`/@reference/${path}`);
  if (!response.ok) throw new Error(`The reference answers can't be read: ${await response.text()}`);
  return response.json();
}

const suffix = ".json";
const { ops: given, sample } = await fetchJson<{ readonly ops: string | null; readonly sample: boolean }>("");
const names = (await fetchJson<string[]>("ops/"))
  .filter((name) => name.endsWith(suffix))
  .map((name) => name.slice(0, -suffix.length));
/** Every row must have cases among the project's own; a folder that was asked for may hold some operators only. */
const tested = given === null ? [...new Set([...names, ...Object.keys(operatorTable)])] : names;

const files = new Map(
  await Promise.all(
    tested
      .filter((name) => names.includes(name))
      .map(async (name) => [name, await fetchJson<ReferenceFile>(`ops/${name}${suffix}`)] as const),
  ),
);

/** The number of values in a case's tensors. */
const sizeOf = ({ tensors }: ReferenceCase): number =>
  tensors.reduce((total, { shape }) => total + shape.reduce((product, size) => product * size, 1), 0);

/** All cases of an operator; in a sample of the project's own, the largest one. */
function casesOf(name: string): (readonly [index: number, reference: ReferenceCase])[] {
  const all = [...(files.get(name)?.cases.entries() ?? [])];
  if (!sample || given !== null) return all;
  return all.sort(([, a], [, b]) => sizeOf(b) - sizeOf(a)).slice(0, 1);
}

test("the reference has operators", () => {
  expect(names.length, "the reference folder's number of operators").toBeGreaterThan(0);
});

for (const name of tested) {
  describe(name, () => {
    const cases = casesOf(name);
    if (cases.length === 0)
      test("has cases", () => {
        expect.fail(`The reference folder has no cases for ${name}.`);
      });
    for (const [index, reference] of cases)
      test(`${index}: ${reference.id}`, async () => {
        await check(name, reference).catch((cause: unknown) => {
          const inputs = reference.tensors.map(({ dtype, shape }) => `${dtype}[${shape.join(", ")}]`);
          throw new Error(`${messageOf(cause)} (the inputs are ${inputs.join(", ") || "no tensors"})`, { cause });
        });
      });
  });
}

/** Runs a case forward and backward, and compares all that PyTorch gives. */
async function check(name: string, reference: ReferenceCase): Promise<void> {
  const row = operatorTable[name];
  if (!row) throw new Error(`Ringlet doesn't have the operator ${name}, or it lacks a row in tests/operatorTable.ts.`);
  const call = new ReferenceCall(reference, row.parameters);
  const result = await row.call(call);
  expect(call.unread, "arguments that the row doesn't pass on").toEqual([]);
  const outputs = "dtype" in result ? [result] : result;
  expect(outputs.length, "the number of outputs").toBe(reference.outputs.length);
  for (const [index, cotangent] of Object.entries(reference.cotangents ?? {})) {
    const output = outputs[Number(index)];
    if (!output) throw new Error(`There is no output ${index} for the cotangent of that index.`);
    // Where PyTorch has no gradient for any tensor; one that is missing is noticed below.
    if (output.requiresGrad) output.backward(toTensor(cotangent));
  }
  const compared: { readonly what: string; readonly of: Tensor; readonly expected: ReferenceTensor }[] = [];
  for (const [index, of] of outputs.entries()) {
    const expected = reference.outputs[index];
    if (!expected) throw new Error(`The reference has no output ${index}.`);
    expect(of.dtype, `output ${index}'s dtype`).toBe(dtypeOf(expected));
    compared.push({ what: `output ${index}`, of, expected });
  }
  for (const [index, expected] of Object.entries(reference.gradients ?? {})) {
    if (!expected) continue;
    const { grad } = call.tensors[Number(index)] ?? {};
    if (!grad) throw new Error(`Tensor ${index} has no gradient; PyTorch gives it one.`);
    compared.push({ what: `the gradient of tensor ${index}`, of: grad, expected });
  }
  // Reads that are asked for together share one flush.
  const values = await Promise.all(compared.map(({ of }) => of.data()));
  const tolerance = row.tolerance?.holdsFor?.(reference) === false ? referenceTolerance : row.tolerance;
  for (const [i, { what, of, expected }] of compared.entries())
    expectClose(what, of.shape, values[i]!, expected, tolerance);
}
