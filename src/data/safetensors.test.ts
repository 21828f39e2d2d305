import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { readSafetensors, type SafetensorsTensor, writeSafetensors } from "./safetensors";

const weight: SafetensorsTensor = { dtype: "F32", shape: [2, 3], data: Float32Array.of(1, 2, 3, 4, 5, 6) };
const count: SafetensorsTensor = { dtype: "I64", shape: [], data: BigInt64Array.of(7n) };
const mask: SafetensorsTensor = { dtype: "BOOL", shape: [3], data: Uint8Array.of(1, 0, 1) };

/** A file with any header, right or wrong. */
function file(header: unknown, body = new Uint8Array(0), headerLength?: bigint): Uint8Array {
  const text = new TextEncoder().encode(typeof header === "string" ? header : JSON.stringify(header));
  const bytes = new Uint8Array(8 + text.length + body.length);
  new DataView(bytes.buffer).setBigUint64(0, headerLength ?? BigInt(text.length), true);
  bytes.set(text, 8);
  bytes.set(body, 8 + text.length);
  return bytes;
}

test("what is written is read back, with shapes, dtypes and metadata", () => {
  const bytes = writeSafetensors(
    [
      ["mask", mask],
      ["0.weight", weight],
      ["count", count],
      ["empty", { dtype: "F16", shape: [0, 4], data: new Uint16Array(0) }],
    ],
    { format: "pt" },
  );
  const { tensors, metadata } = readSafetensors(bytes);
  expect(metadata).toEqual({ format: "pt" });
  expect(tensors.get("0.weight")).toEqual(weight);
  expect(tensors.get("count")).toEqual(count);
  expect(tensors.get("mask")).toEqual(mask);
  expect(tensors.get("empty")).toEqual({ dtype: "F16", shape: [0, 4], data: new Uint16Array(0) });
  expect(tensors.size).toBe(4);
});

test("a written file has the format's bytes", () => {
  const bytes = writeSafetensors([["a", { dtype: "F32", shape: [1], data: Float32Array.of(1) }]]);
  const header = '{"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}';
  const length = Math.ceil(header.length / 8) * 8;
  expect([...bytes]).toEqual([
    ...[length, 0, 0, 0, 0, 0, 0, 0],
    ...new TextEncoder().encode(header.padEnd(length)),
    ...[0, 0, 0x80, 0x3f],
  ]);
});

test("PyTorch's own files are read, with its names and shapes", () => {
  const { tensors } = readSafetensors(readFileSync("tests/reference/training/mlp.initial.safetensors"));
  expect([...tensors].map(([name, { dtype, shape }]) => [name, dtype, shape]).sort()).toEqual([
    ["1.bias", "F32", [128]],
    ["1.weight", "F32", [128, 784]],
    ["3.bias", "F32", [64]],
    ["3.weight", "F32", [64, 128]],
    ["5.bias", "F32", [10]],
    ["5.weight", "F32", [10, 64]],
  ]);
  const bound = 1 / Math.sqrt(784);
  for (const value of tensors.get("1.weight")?.data ?? []) expect(Math.abs(Number(value))).toBeLessThanOrEqual(bound);
});

test("a file at an odd address is read just the same", () => {
  const bytes = writeSafetensors([["0.weight", weight]]);
  const shifted = new Uint8Array(bytes.length + 1);
  shifted.set(bytes, 1);
  expect(readSafetensors(shifted.subarray(1)).tensors.get("0.weight")).toEqual(weight);
});

const entry = (fields: object) => ({ a: { dtype: "F32", shape: [1], data_offsets: [0, 4], ...fields } });
const four = new Uint8Array(4);

test.each<[string, Uint8Array, string]>([
  ["no length", new Uint8Array(7), "it has 7 bytes"],
  ["a header beyond the file", file({}, four, 1n << 63n), "its header should have 9223372036854775808 bytes"],
  ["no JSON", file("{"), "its header isn't JSON"],
  ["broken UTF-8", file("").fill(0xff, 8), "its header isn't JSON"],
  ["a list as header", file([]), "its header isn't a JSON object"],
  ["metadata that isn't text", file({ __metadata__: { a: 1 } }), "its metadata a isn't text"],
  ["an entry that is null", file({ a: null }), "the entry of tensor a isn't a JSON object"],
  ["an unknown field", file(entry({ strides: [1] }), four), "an unknown field strides"],
  ["an unknown dtype", file(entry({ dtype: "constructor" }), four), 'the dtype "constructor"'],
  ["a negative size", file(entry({ shape: [-1] }), four), "the shape [-1]"],
  ["a fraction as size", file(entry({ shape: [0.5] }), four), "the shape [0.5]"],
  ["one offset", file(entry({ data_offsets: [0] }), four), "the data_offsets [0]"],
  ["offsets backwards", file(entry({ data_offsets: [4, 0] }), four), "should be bytes 4 to 0 of 4"],
  ["data that is cut off", file(entry({}), new Uint8Array(3)), "should be bytes 0 to 4 of 3 (is the file cut off?)"],
  ["a shape that doesn't fit", file(entry({ shape: [2] }), four), "tensor a of F32 [2] takes 8 bytes; it has 4"],
  ["a shape that overflows", file(entry({ shape: [2 ** 52, 2 ** 52] }), four), "it has 4"],
  ["a gap", file(entry({ data_offsets: [4, 8] }), new Uint8Array(8)), "tensor a begins at byte 4"],
  ["overlapping tensors", file({ ...entry({}), b: entry({}).a }, four), "tensor b begins at byte 0"],
  ["bytes left over", file(entry({}), new Uint8Array(6)), "its last 2 bytes belong to no tensor"],
])("refuses %s with a sentence", (_, bytes, sentence) => {
  expect(() => readSafetensors(bytes)).toThrow(sentence);
});

test("writing refuses a name given twice and a shape that doesn't fit", () => {
  expect(() =>
    writeSafetensors([
      ["a", weight],
      ["a", weight],
    ]),
  ).toThrow("a tensor named a: the name is taken");
  expect(() => writeSafetensors([["a", { ...weight, shape: [5] }]])).toThrow("shape [5] can't hold 6 values");
});

test("a tensor may bear the name of an object's property", () => {
  const names = ["constructor", "toString"];
  const bytes = writeSafetensors(names.map((name) => [name, weight]));
  expect([...readSafetensors(bytes).tensors.keys()]).toEqual(names);
});
