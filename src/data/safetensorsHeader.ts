/**
 * The header of safetensors files (https://github.com/huggingface/safetensors#format): 8 bytes with the header's length, a
 * JSON header {name: {dtype, shape, data_offsets}}, then the tensors' bytes, all little-endian.
 */

/** The array that holds the values of each dtype. */
interface Arrays {
  F64: Float64Array;
  F32: Float32Array;
  I64: BigInt64Array;
  I32: Int32Array;
  I16: Int16Array;
  I8: Int8Array;
  U64: BigUint64Array;
  U32: Uint32Array;
  U16: Uint16Array;
  U8: Uint8Array;
  /** The bits of each half-precision value. */
  F16: Uint16Array;
  /** The upper 16 bits of each float32 value. */
  BF16: Uint16Array;
  /** 0 or 1. */
  BOOL: Uint8Array;
}

export type SafetensorsDtype = keyof Arrays;

export const bytesPerValue: Readonly<Record<SafetensorsDtype, number>> = {
  F64: 8,
  F32: 4,
  I64: 8,
  I32: 4,
  I16: 2,
  I8: 1,
  U64: 8,
  U32: 4,
  U16: 2,
  U8: 1,
  F16: 2,
  BF16: 2,
  BOOL: 1,
};

/** One tensor: values in row-major order. */
export type SafetensorsTensor = {
  [Dtype in SafetensorsDtype]: {
    readonly dtype: Dtype;
    readonly shape: readonly number[];
    readonly data: Arrays[Dtype];
  };
}[SafetensorsDtype];

/** A tensor as the header describes it: where its bytes lie, counted from the header's end. */
export interface SafetensorsEntry {
  readonly name: string;
  readonly dtype: SafetensorsDtype;
  readonly shape: readonly number[];
  readonly begin: number;
  readonly end: number;
}

export interface SafetensorsHeader {
  readonly metadata: Readonly<Record<string, string>>;
  /** In the order in which their bytes lie, without gaps. */
  readonly entries: readonly SafetensorsEntry[];
  /** The bytes of all of them. */
  readonly length: number;
}

export const lengthBytes = 8;
/** The format's own bound on the header, so that a hostile length can't ask for all memory. */
const largestHeader = 100_000_000;

/**
 * How long the header is, by the file's first 8 bytes.
 * @param available the bytes behind these 8; Infinity where nobody knows.
 */
export function readHeaderLength(bytes: Uint8Array, available: number): number {
  if (bytes.length < lengthBytes)
    throw fault(`it has ${bytes.length} bytes, of which the first 8 should be the header's length`);
  const length = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength).getBigUint64(0, true);
  if (length > BigInt(Math.min(largestHeader, available)))
    throw fault(
      available === Infinity
        ? `its header should have ${length} bytes, and the format allows ${largestHeader}`
        : `its header should have ${length} bytes, but the file has only ${available + lengthBytes} (is it cut off?)`,
    );
  return Number(length);
}

/**
 * Reads and checks the header's JSON.
 * @param bodyLength the bytes behind the header; null where nobody knows yet.
 * @throws Error saying what is wrong with the file: a header that isn't JSON or has other fields than the format's, a
 * shape that doesn't fit its bytes, and tensors that overlap, leave gaps or pass the file's end.
 */
export function readHeader(bytes: Uint8Array, bodyLength: number | null): SafetensorsHeader {
  let header: unknown;
  try {
    header = JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(bytes));
  } catch (cause) {
    throw fault("its header isn't JSON", cause);
  }
  if (!isObject(header)) throw fault("its header isn't a JSON object");
  let metadata: Readonly<Record<string, string>> = {};
  const entries: SafetensorsEntry[] = [];
  for (const [name, entry] of Object.entries(header)) {
    if (name === "__metadata__") metadata = readMetadata(entry);
    else entries.push(readEntry(name, entry, bodyLength ?? Infinity));
  }
  entries.sort((a, b) => a.begin - b.begin || a.end - b.end);
  let length = 0;
  for (const { name, begin, end } of entries) {
    if (begin !== length)
      throw fault(`tensor ${name} begins at byte ${begin}, but the tensors before it end at byte ${length}`);
    length = end;
  }
  if (bodyLength !== null && length !== bodyLength)
    throw fault(`its last ${bodyLength - length} bytes belong to no tensor`);
  return { metadata, entries, length };
}

function readMetadata(entry: unknown): Record<string, string> {
  if (!isObject(entry)) throw fault("its __metadata__ isn't a JSON object");
  const pairs = Object.entries(entry).map(([key, value]) => {
    if (typeof value !== "string") throw fault(`its metadata ${key} isn't text`);
    return [key, value] as const;
  });
  return Object.fromEntries(pairs);
}

function readEntry(name: string, entry: unknown, bodyLength: number): SafetensorsEntry {
  if (!isObject(entry)) throw fault(`the entry of tensor ${name} isn't a JSON object`);
  for (const key of Object.keys(entry))
    if (key !== "dtype" && key !== "shape" && key !== "data_offsets")
      throw fault(`the entry of tensor ${name} has an unknown field ${key}`);
  const dtype = "dtype" in entry ? entry.dtype : undefined;
  if (!isDtype(dtype)) throw fault(`tensor ${name} has the dtype ${JSON.stringify(dtype)}, which the format lacks`);
  const shape = "shape" in entry ? entry.shape : undefined;
  if (!isCounts(shape))
    throw fault(`tensor ${name} has the shape ${JSON.stringify(shape)}, which isn't a list of counts`);
  const offsets = "data_offsets" in entry ? entry.data_offsets : undefined;
  if (!isCounts(offsets) || offsets.length !== 2)
    throw fault(`tensor ${name} has the data_offsets ${JSON.stringify(offsets)}, which aren't two counts`);
  const [begin = 0, end = 0] = offsets;
  if (begin > end || end > bodyLength)
    throw fault(`tensor ${name} should be bytes ${begin} to ${end} of ${bodyLength} (is the file cut off?)`);
  const expected = shape.reduce((product, size) => product * size, bytesPerValue[dtype]);
  if (expected !== end - begin)
    throw fault(`tensor ${name} of ${dtype} [${shape.join(", ")}] takes ${expected} bytes; it has ${end - begin}`);
  return { name, dtype, shape, begin, end };
}

/** A tensor over its bytes: a view of them where the alignment allows it, and of a copy elsewhere. */
export function toTensor({ dtype, shape }: SafetensorsEntry, bytes: Uint8Array): SafetensorsTensor {
  const size = bytesPerValue[dtype];
  const aligned = bytes.byteOffset % size === 0 ? bytes : bytes.slice();
  const { buffer, byteOffset } = aligned;
  const count = aligned.byteLength / size;
  switch (dtype) {
    case "F64":
      return { dtype, shape, data: new Float64Array(buffer, byteOffset, count) };
    case "F32":
      return { dtype, shape, data: new Float32Array(buffer, byteOffset, count) };
    case "I64":
      return { dtype, shape, data: new BigInt64Array(buffer, byteOffset, count) };
    case "I32":
      return { dtype, shape, data: new Int32Array(buffer, byteOffset, count) };
    case "I16":
      return { dtype, shape, data: new Int16Array(buffer, byteOffset, count) };
    case "I8":
      return { dtype, shape, data: new Int8Array(buffer, byteOffset, count) };
    case "U64":
      return { dtype, shape, data: new BigUint64Array(buffer, byteOffset, count) };
    case "U32":
      return { dtype, shape, data: new Uint32Array(buffer, byteOffset, count) };
    case "U16":
    case "F16":
    case "BF16":
      return { dtype, shape, data: new Uint16Array(buffer, byteOffset, count) };
    case "U8":
    case "BOOL":
      return { dtype, shape, data: new Uint8Array(buffer, byteOffset, count) };
  }
}

/** What the header says of a tensor that is to be written. */
export interface SafetensorsType {
  readonly dtype: SafetensorsDtype;
  readonly shape: readonly number[];
}

/**
 * The beginning of a file with these tensors, whose bytes follow in this order: the length and the header, filled up with
 * spaces such that the tensors are aligned to 8 bytes.
 * @throws Error for a name given twice.
 */
export function writeHeader(
  tensors: readonly (readonly [name: string, type: SafetensorsType])[],
  metadata: Readonly<Record<string, string>>,
): { readonly bytes: Uint8Array<ArrayBuffer>; readonly length: number } {
  const entries = new Map<string, object>();
  if (Object.keys(metadata).length > 0) entries.set("__metadata__", metadata);
  let length = 0;
  for (const [name, { dtype, shape }] of tensors) {
    if (entries.has(name) || name === "__metadata__")
      throw new Error(`A safetensors file can't hold a tensor named ${name}: the name is taken.`);
    const end = length + byteLength({ dtype, shape });
    entries.set(name, { dtype, shape, data_offsets: [length, end] });
    length = end;
  }
  const header = new TextEncoder().encode(JSON.stringify(Object.fromEntries(entries)));
  const headerLength = Math.ceil(header.length / 8) * 8;
  const bytes = new Uint8Array(lengthBytes + headerLength);
  new DataView(bytes.buffer).setBigUint64(0, BigInt(headerLength), true);
  bytes.fill(0x20, lengthBytes);
  bytes.set(header, lengthBytes);
  return { bytes, length };
}

/** The bytes of a tensor's values. */
export const byteLength = ({ dtype, shape }: SafetensorsType): number =>
  shape.reduce((product, size) => product * size, bytesPerValue[dtype]);

/** The tensors as the format's own writer orders them: wider types first, so that every tensor is aligned. */
export const aligned = <Type extends SafetensorsType>(tensors: Iterable<readonly [string, Type]>) =>
  [...tensors].sort(([, a], [, b]) => bytesPerValue[b.dtype] - bytesPerValue[a.dtype]);

const isObject = (value: unknown): value is object =>
  typeof value === "object" && value !== null && !Array.isArray(value);

const isDtype = (value: unknown): value is SafetensorsDtype =>
  typeof value === "string" && Object.hasOwn(bytesPerValue, value);

const isCounts = (value: unknown): value is number[] =>
  Array.isArray(value) && value.every((count) => Number.isSafeInteger(count) && count >= 0);

export function fault(what: string, cause?: unknown): Error {
  return new Error(`This isn't a safetensors file: ${what}.`, { cause });
}
