import {
  aligned,
  lengthBytes,
  readHeader,
  readHeaderLength,
  type SafetensorsTensor,
  toTensor,
  writeHeader,
} from "./safetensorsHeader";

export type { SafetensorsDtype, SafetensorsTensor } from "./safetensorsHeader";

export interface SafetensorsFile {
  readonly tensors: ReadonlyMap<string, SafetensorsTensor>;
  /** Free text pairs (`__metadata__`), which PyTorch's tools use for a format's name. */
  readonly metadata: Readonly<Record<string, string>>;
}

/**
 * Reads a whole file. A tensor's data is a view of `bytes` where the alignment allows it, and a copy elsewhere.
 * `readSafetensorsStream` takes one tensor at a time.
 * @throws Error saying what is wrong with the file: a header that is cut off, isn't JSON or has other fields than the
 * format's, a shape that doesn't fit its bytes, and tensors that overlap, leave gaps or pass the file's end.
 */
export function readSafetensors(bytes: Uint8Array): SafetensorsFile {
  const start = lengthBytes + readHeaderLength(bytes, bytes.length - lengthBytes);
  const body = bytes.subarray(start);
  const { entries, metadata } = readHeader(bytes.subarray(lengthBytes, start), body.length);
  const tensors = entries.map((entry) => [entry.name, toTensor(entry, body.subarray(entry.begin, entry.end))] as const);
  return { tensors: new Map(tensors), metadata };
}

/**
 * The bytes of a file with these tensors, in the order given (but wider dtypes first, as the format's own writer does,
 * so that every tensor is aligned). `writeSafetensorsStream` takes one tensor at a time.
 * @throws Error for a name given twice or a shape that doesn't fit its data.
 */
export function writeSafetensors(
  tensors: Iterable<readonly [name: string, tensor: SafetensorsTensor]>,
  metadata: Readonly<Record<string, string>> = {},
): Uint8Array<ArrayBuffer> {
  const sorted = aligned(tensors);
  for (const [name, { shape, data }] of sorted)
    if (shape.reduce((product, size) => product * size, 1) !== data.length)
      throw new Error(`Tensor ${name} of shape [${shape.join(", ")}] can't hold ${data.length} values.`);
  const header = writeHeader(sorted, metadata);
  const bytes = new Uint8Array(header.bytes.length + header.length);
  bytes.set(header.bytes);
  let offset = header.bytes.length;
  for (const [, { data }] of sorted) {
    bytes.set(new Uint8Array(data.buffer, data.byteOffset, data.byteLength), offset);
    offset += data.byteLength;
  }
  return bytes;
}
