import { toBrain, toHalf } from "../base/float16";
import { ByteReader } from "./byteReader";
import {
  aligned,
  byteLength,
  fault,
  lengthBytes,
  readHeader,
  readHeaderLength,
  type SafetensorsEntry,
  type SafetensorsTensor,
  type SafetensorsType,
  toTensor,
  writeHeader,
} from "./safetensorsHeader";

export interface SafetensorsStream {
  readonly metadata: Readonly<Record<string, string>>;
  /** All tensors of the file, in its order, as the header describes them. */
  readonly entries: readonly SafetensorsEntry[];
  /** The tensors in this order, each read when it is asked for. To be walked through once. */
  readonly tensors: AsyncGenerator<readonly [name: string, tensor: SafetensorsTensor], void, void>;
}

/**
 * Reads a file as it arrives, such as a response's `body`, one tensor at a time. Leaving the loop over the tensors cancels
 * the stream.
 * @throws Error as `readSafetensors` does: of a header at once, and of bytes that are missing or left over where the
 * tensors are walked through.
 */
export async function readSafetensorsStream(stream: ReadableStream<Uint8Array>): Promise<SafetensorsStream> {
  const reader = new ByteReader(stream);
  try {
    const length = readHeaderLength(await reader.take(lengthBytes), Infinity);
    const text = await reader.take(length);
    if (text.length < length)
      throw fault(
        `its header should have ${length} bytes, but the file has only ${text.length + lengthBytes} (is it cut off?)`,
      );
    const { metadata, entries } = readHeader(text, null);
    return { metadata, entries, tensors: tensorsOf(reader, entries) };
  } catch (error) {
    await reader.cancel(error).catch(() => {});
    throw error;
  }
}

async function* tensorsOf(
  reader: ByteReader,
  entries: readonly SafetensorsEntry[],
): AsyncGenerator<readonly [string, SafetensorsTensor], void, void> {
  try {
    for (const entry of entries) {
      const { name, begin, end } = entry;
      const bytes = await reader.take(end - begin);
      if (bytes.length < end - begin)
        throw fault(
          `tensor ${name} should be bytes ${begin} to ${end} of ${begin + bytes.length} (is the file cut off?)`,
        );
      yield [name, toTensor(entry, bytes)];
    }
    if (!(await reader.isAtEnd())) throw fault("bytes behind its last tensor belong to none");
  } finally {
    await reader.cancel().catch(() => {});
  }
}

/** What a tensor of the engine is here: its values come when they are asked for. */
export interface ReadableTensor {
  readonly shape: readonly number[];
  readonly dtype: "float32" | "float16" | "bfloat16" | "int32" | "bool";
  data(): Promise<ArrayLike<number>>;
}

const fileType = { float32: "F32", float16: "F16", bfloat16: "BF16", int32: "I32", bool: "BOOL" } as const;

/** Values of a tensor of the engine as a file holds them. */
function encode(dtype: ReadableTensor["dtype"], values: ArrayLike<number>): ArrayBufferView<ArrayBuffer> {
  switch (dtype) {
    case "float32":
      return Float32Array.from(values);
    case "float16":
      return Uint16Array.from(values, toHalf);
    case "bfloat16":
      return Uint16Array.from(values, toBrain);
    case "int32":
      return Int32Array.from(values);
    case "bool":
      return Uint8Array.from(values);
  }
}

type Written = SafetensorsType & { readonly read: () => Promise<ArrayBufferView> };

const isReadable = (tensor: SafetensorsTensor | ReadableTensor): tensor is ReadableTensor =>
  typeof tensor.data === "function";

const writtenOf = (tensor: SafetensorsTensor | ReadableTensor): Written =>
  isReadable(tensor)
    ? {
        dtype: fileType[tensor.dtype],
        shape: tensor.shape,
        read: async () => encode(tensor.dtype, await tensor.data()),
      }
    : { dtype: tensor.dtype, shape: tensor.shape, read: async () => tensor.data };

/**
 * A file with these tensors as a stream, such as a module's `stateDict()`: a tensor is read from the GPU when its turn
 * comes. PyTorch reads it by the same names.
 * @throws Error for a name given twice; the stream fails for a shape that doesn't fit its data.
 */
export function writeSafetensorsStream(
  tensors: Iterable<readonly [name: string, tensor: SafetensorsTensor | ReadableTensor]>,
  metadata: Readonly<Record<string, string>> = {},
): ReadableStream<Uint8Array<ArrayBuffer>> {
  const sorted = aligned([...tensors].map(([name, tensor]) => [name, writtenOf(tensor)] as const));
  const header = writeHeader(sorted, metadata);
  let next = 0;
  return new ReadableStream<Uint8Array<ArrayBuffer>>(
    {
      start: (controller) => controller.enqueue(header.bytes),
      async pull(controller) {
        const [name, tensor] = sorted[next++] ?? [];
        if (!tensor) return controller.close();
        const { buffer, byteOffset, byteLength: length } = await tensor.read();
        if (length !== byteLength(tensor))
          throw new Error(
            `Tensor ${name} of ${tensor.dtype} [${tensor.shape.join(", ")}] takes ${byteLength(tensor)} bytes; it has ${length}.`,
          );
        controller.enqueue(new Uint8Array(buffer, byteOffset, length).slice());
      },
    },
    // One tensor at a time, not one ahead.
    new CountQueuingStrategy({ highWaterMark: 0 }),
  );
}
