import { expect, test } from "vitest";
import { readSafetensors, type SafetensorsTensor, writeSafetensors } from "./safetensors";
import { readSafetensorsStream, writeSafetensorsStream } from "./safetensorsStream";

const tensors: readonly (readonly [string, SafetensorsTensor])[] = [
  ["weight", { dtype: "F32", shape: [2, 3], data: Float32Array.of(1, 2, 3, 4, 5, 6) }],
  ["half", { dtype: "F16", shape: [3], data: Uint16Array.of(0x3c00, 0xc000, 0x7c00) }],
  ["mask", { dtype: "BOOL", shape: [3], data: Uint8Array.of(1, 0, 1) }],
  ["empty", { dtype: "I32", shape: [0, 4], data: new Int32Array(0) }],
];

/** The bytes in chunks of a length. */
function streamOf(bytes: Uint8Array<ArrayBuffer>, chunk: number, onCancel = () => {}): ReadableStream<Uint8Array> {
  let at = 0;
  return new ReadableStream<Uint8Array<ArrayBuffer>>({
    pull(controller) {
      if (at >= bytes.length) return controller.close();
      controller.enqueue(bytes.subarray(at, at + chunk));
      at += chunk;
    },
    cancel: onCancel,
  });
}

async function readAll(stream: ReadableStream<Uint8Array>) {
  const { metadata, entries, tensors: read } = await readSafetensorsStream(stream);
  const found = new Map<string, SafetensorsTensor>();
  for await (const [name, tensor] of read) found.set(name, tensor);
  return { metadata, names: entries.map(({ name }) => name), found };
}

const collected = async (stream: ReadableStream<Uint8Array>) =>
  new Uint8Array(await new Response(stream).arrayBuffer());

test.each([1, 7, 64, 100_000])("a file that arrives in chunks of %i bytes is read as a whole one", async (chunk) => {
  const bytes = writeSafetensors(tensors, { format: "pt" });
  const { metadata, names, found } = await readAll(streamOf(bytes, chunk));
  expect(metadata).toEqual({ format: "pt" });
  expect(found).toEqual(readSafetensors(bytes).tensors);
  expect(names).toEqual([...found.keys()]);
});

test("a stream has the bytes of a file that is written at once", async () => {
  expect(await collected(writeSafetensorsStream(tensors, { format: "pt" }))).toEqual(
    writeSafetensors(tensors, { format: "pt" }),
  );
});

test("tensors of the engine are read one after the other, when the stream is, in their own types", async () => {
  const asked: string[] = [];
  const of = (name: string, dtype: "float32" | "float16" | "bfloat16" | "int32" | "bool", values: number[]) =>
    [
      name,
      {
        shape: [values.length],
        dtype,
        data: async () => {
          asked.push(name);
          return values;
        },
      },
    ] as const;
  const stream = writeSafetensorsStream([
    of("a", "float32", [0.1]),
    of("b", "int32", [-7]),
    of("c", "float16", [1.5, 1e-8]),
    of("d", "bfloat16", [-2]),
    of("e", "bool", [1, 0]),
  ]);
  const reader = stream.getReader();
  await reader.read();
  expect(asked).toEqual([]);
  await reader.read();
  expect(asked).toEqual(["a"]);
  while (!(await reader.read()).done);
  expect(asked).toEqual(["a", "b", "c", "d", "e"]);
  const again = writeSafetensorsStream([of("c", "float16", [1.5, 1e-8]), of("d", "bfloat16", [-2])]);
  const { found } = await readAll(again);
  expect(found.get("c")?.data).toEqual(Uint16Array.of(0x3e00, 0));
  expect(found.get("d")?.data).toEqual(Uint16Array.of(0xc000));
});

test("leaving the loop over the tensors cancels the stream", async () => {
  let cancelled = false;
  const { tensors: read } = await readSafetensorsStream(
    streamOf(writeSafetensors(tensors), 16, () => {
      cancelled = true;
    }),
  );
  for await (const [name] of read) if (name === "weight") break;
  expect(cancelled).toBe(true);
});

const header = (entries: object, length?: bigint) => {
  const text = new TextEncoder().encode(JSON.stringify(entries));
  const bytes = new Uint8Array(8 + text.length);
  new DataView(bytes.buffer).setBigUint64(0, length ?? BigInt(text.length), true);
  bytes.set(text, 8);
  return bytes;
};
const entry = (shape: number[], ...offsets: number[]) => ({ dtype: "F32", shape, data_offsets: offsets });

test.each<[string, Uint8Array<ArrayBuffer>, string]>([
  ["a header beyond the format's bound", header({}, 1n << 62n), "and the format allows 100000000"],
  ["a header that is cut off", header({}, 50n), "its header should have 50 bytes, but the file has only 10"],
  [
    "a terabyte that doesn't come",
    header({ a: entry([2 ** 38], 0, 2 ** 40) }),
    "should be bytes 0 to 1099511627776 of 0 (is the file cut off?)",
  ],
  ["a gap", header({ a: entry([1], 4, 8) }), "tensor a begins at byte 4"],
  [
    "bytes left over",
    Uint8Array.of(...header({ a: entry([1], 0, 4) }), 0, 0, 0, 0, 9),
    "bytes behind its last tensor belong to none",
  ],
])("refuses %s with a sentence", async (_, bytes, sentence) => {
  await expect(readAll(streamOf(bytes, 32))).rejects.toThrow(sentence);
});

test("a tensor whose data doesn't fit its shape fails the stream with a sentence", async () => {
  const wrong = { dtype: "F32", shape: [5], data: Float32Array.of(1) } as const;
  await expect(collected(writeSafetensorsStream([["a", wrong]]))).rejects.toThrow("takes 20 bytes; it has 4");
});
