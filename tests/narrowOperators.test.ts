import { readdirSync, readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { ones } from "../src/tensor/index";
import { operatorTable } from "./operatorTable";
import { ReferenceCall } from "./referenceCall";
import type { ReferenceFile } from "./referenceCase";

// What is recorded for the reference's calls with narrow floats; that takes no device.

const folder = new URL("./reference/ops/", import.meta.url);
const files = readdirSync(folder).map((name): ReferenceFile => JSON.parse(readFileSync(new URL(name, folder), "utf8")));

/** These wait for values, to know their results' shapes. */
const readsValues = ["masked_select", "repeat_interleave", "unique_consecutive"];
const recorded = files.filter(({ op }) => !readsValues.includes(op));

test.each(recorded)(
  "$op takes float16 and bfloat16, and gives results and gradients of them",
  async ({ op, cases }) => {
    const row = operatorTable[op];
    if (!row) throw new Error(`tests/operatorTable.ts lacks a row for ${op}.`);
    for (const dtype of ["float16", "bfloat16"] as const)
      for (const reference of cases) {
        const call = new ReferenceCall(reference, row.parameters, dtype);
        const result = await row.call(call);
        const outputs = "dtype" in result ? [result] : result;
        // Some calls ask for a type.
        for (const [i, output] of outputs.entries())
          if (reference.outputs[i]?.dtype === "float32" && !reference.kwargs.dtype)
            expect(output.dtype, `${reference.id}, result ${i}`).toBe(dtype);
        for (const output of outputs)
          if (output.requiresGrad) output.backward(ones(output.shape, { dtype: output.dtype }));
        for (const [i, tensor] of call.tensors.entries())
          if (reference.gradients?.[i]) expect(tensor.grad?.dtype, `${reference.id}, gradient ${i}`).toBe(dtype);
      }
  },
);
