import { afterAll, describe, expect, test } from "vitest";
import type { Tensor } from "../src/tensor/index";
import { operatorTable } from "./operatorTable";
import { dtypeOf, ReferenceCall, toTensor } from "./referenceCall";
import { expectClose, type ReferenceCase, type ReferenceFile, type ReferenceTensor } from "./referenceCase";

async function fetchJson<T>(path: string): Promise<T> {
  const response = await fetch(`/@reference/${path}`);
  if (!response.ok) throw new Error(`The reference answers can't be read: ${await response.text()}`);
  return response.json();
}

const suffix = ".json";
const { ops: given } = await fetchJson<{ readonly ops: string | null }>("");
const names = (await fetchJson<string[]>("ops/"))
  .filter((name) => name.endsWith(suffix))
  .map((name) => name.slice(0, -suffix.length));
/** The project's own copy also holds operators that Ringlet doesn't have; a folder that was asked for must be met. */
const tested = given === null ? Object.keys(operatorTable) : names;

const files = new Map(
  await Promise.all(
    tested
      .filter((name) => names.includes(name))
      .map(async (name) => [name, await fetchJson<ReferenceFile>(`ops/${name}${suffix}`)] as const),
  ),
);

const counts = { expected: 0, passed: 0, failed: 0 };

test("the reference has operators", () => {
  expect(names.length, "the reference folder's number of operators").toBeGreaterThan(0);
});

for (const name of tested) {
  describe(name, () => {
    const row = operatorTable[name];
    const file = files.get(name);
    if (!row || !file) {
      counts.expected += file?.cases.length ?? 0;
      counts.failed += file?.cases.length ?? 0;
      test("is in the table and in the reference", () => {
        expect.fail(
          row
            ? `The reference folder has no ${name}${suffix}, whose cases the table's row is for.`
            : `The reference has cases for ${name}, an operator that Ringlet doesn't have, or that lacks a row in tests/operatorTable.ts.`,
        );
      });
      return;
    }
    const { cases } = file;
    test("has cases", () => {
      expect(cases.length).toBeGreaterThan(0);
    });
    for (const [index, reference] of cases.entries()) {
      counts.expected += 1;
      test(`${index}: ${reference.id}`, async () => {
        counts.failed += 1;
        await check(name, reference);
        counts.failed -= 1;
        counts.passed += 1;
      });
    }
  });
}

afterAll(() => {
  const { expected, passed, failed } = counts;
  console.log(`Reference cases: ${expected} expected, ${passed} passed, ${failed} failed.`);
});

/** Runs a case forward and backward, and compares all that PyTorch gives. */
async function check(name: string, reference: ReferenceCase): Promise<void> {
  const row = operatorTable[name];
  if (!row) throw new Error(`There is no row for ${name}.`);
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
  for (const [i, { what, of, expected }] of compared.entries())
    expectClose(what, of.shape, values[i]!, expected, row.tolerance);
}
