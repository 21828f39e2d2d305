/**
 * Reads and writes safetensors files (https://github.com/huggingface/safetensors#format): 8 bytes with the header's
 * length, a JSON header {name: {dtype, shape, data_offsets}}, then the tensors' bytes, all little-endian.
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

const bytesPerValue: Readonly<Record<SafetensorsDtype, number>> = {
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

export interface SafetensorsFile {
  readonly tensors: ReadonlyMap<string, SafetensorsTensor>;
  /** Free text pairs (`__metadata__`), which PyTorch's tools use for a format's name. */
  readonly metadata: Readonly<Record<string, string>>;
}

const lengthBytes = 8;
/** The format's own bound on the header, so that a hostile length can't ask for all memory. */
const largestHeader = 100_000_000;

/**
 * Reads a whole file. A tensor's data is a view of `bytes` where the alignment allows it, and a copy elsewhere.
 * @throws Error saying what is wrong with the file: a header that is cut off, isn't JSON or has other fields than the
 * format's, a shape that doesn't fit its bytes, and tensors that overlap, leave gaps or pass the file's end.
 */
export function readSafetensors(bytes: Uint8Array): SafetensorsFile {
  const { header, start } = readHeader(bytes);
  const body = bytes.subarray(start);
  const tensors = new Map<string, SafetensorsTensor>();
  const ranges: { name: string; begin: number; end: number }[] = [];
  let metadata: Readonly<Record<string, string>> = {};
  for (const [name, entry] of Object.entries(header)) {
    if (name === "__metadata__") {
      metadata = readMetadata(entry);
      continue;
    }
    const { dtype, shape, begin, end } = readEntry(name, entry, body.length);
    ranges.push({ name, begin, end });
    tensors.set(name, toTensor(dtype, shape, body.subarray(begin, end)));
  }
  checkCoverage(ranges, body.length);
  return { tensors, metadata };
}

function readHeader(bytes: Uint8Array): { header: object; start: number } {
  if (bytes.length < lengthBytes)
    throw fault(`it has ${bytes.length} bytes, of which the first 8 should be the header's length`);
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const length = view.getBigUint64(0, true);
  if (length > BigInt(Math.min(largestHeader, bytes.length - lengthBytes)))
    throw fault(`its header should have ${length} bytes, but the file has only ${bytes.length} (is it cut off?)`);
  const start = lengthBytes + Number(length);
  let header: unknown;
  try {
    header = JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(bytes.subarray(lengthBytes, start)));
  } catch (cause) {
    throw fault("its header isn't JSON", cause);
  }
  if (!isObject(header)) throw fault("its header isn't a JSON object");
  return { header, start };
}

function readMetadata(entry: unknown): Record<string, string> {
  if (!isObject(entry)) throw fault("its __metadata__ isn't a JSON object");
  const pairs = Object.entries(entry).map(([key, value]) => {
    if (typeof value !== "string") throw fault(`its metadata ${key} isn't text`);
    return [key, value] as const;
  });
  return Object.fromEntries(pairs);
}

function readEntry(name: string, entry: unknown, bodyLength: number) {
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
  return { dtype, shape, begin, end };
}

function checkCoverage(ranges: { name: string; begin: number; end: number }[], bodyLength: number): void {
  ranges.sort((a, b) => a.begin - b.begin || a.end - b.end);
  let covered = 0;
  for (const { name, begin, end } of ranges) {
    if (begin !== covered)
      throw fault(`tensor ${name} begins at byte ${begin}, but the tensors before it end at byte ${covered}`);
    covered = end;
  }
  if (covered !== bodyLength) throw fault(`its last ${bodyLength - covered} bytes belong to no tensor`);
}

function toTensor(dtype: SafetensorsDtype, shape: readonly number[], bytes: Uint8Array): SafetensorsTensor {
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

/**
 * The bytes of a file with these tensors, in the order given (but wider dtypes first, as the format's own writer does,
 * so that every tensor is aligned).
 * @throws Error for a name given twice or a shape that doesn't fit its data.
 */
export function writeSafetensors(
  tensors: Iterable<readonly [name: string, tensor: SafetensorsTensor]>,
  metadata: Readonly<Record<string, string>> = {},
): Uint8Array<ArrayBuffer> {
  const sorted = [...tensors].sort(([, a], [, b]) => b.data.BYTES_PER_ELEMENT - a.data.BYTES_PER_ELEMENT);
  const entries = new Map<string, object>();
  if (Object.keys(metadata).length > 0) entries.set("__metadata__", metadata);
  let length = 0;
  for (const [name, { dtype, shape, data }] of sorted) {
    if (entries.has(name) || name === "__metadata__")
      throw new Error(`A safetensors file can't hold a tensor named ${name}: the name is taken.`);
    if (shape.reduce((product, size) => product * size, 1) !== data.length)
      throw new Error(`Tensor ${name} of shape [${shape.join(", ")}] can't hold ${data.length} values.`);
    entries.set(name, { dtype, shape, data_offsets: [length, length + data.byteLength] });
    length += data.byteLength;
  }
  const header = new TextEncoder().encode(JSON.stringify(Object.fromEntries(entries)));
  // Spaces after the JSON align the tensors to 8 bytes.
  const headerLength = Math.ceil(header.length / 8) * 8;
  const bytes = new Uint8Array(lengthBytes + headerLength + length);
  new DataView(bytes.buffer).setBigUint64(0, BigInt(headerLength), true);
  bytes.fill(0x20, lengthBytes, lengthBytes + headerLength);
  bytes.set(header, lengthBytes);
  let offset = lengthBytes + headerLength;
  for (const [, { data }] of sorted) {
    bytes.set(new Uint8Array(data.buffer, data.byteOffset, data.byteLength), offset);
    offset += data.byteLength;
  }
  return bytes;
}

const isObject = (value: unknown): value is object =>
  typeof value === "object" && value !== null && !Array.isArray(value);

const isDtype = (value: unknown): value is SafetensorsDtype =>
  typeof value === "string" && Object.hasOwn(bytesPerValue, value);

const isCounts = (value: unknown): value is number[] =>
  Array.isArray(value) && value.every((count) => Number.isSafeInteger(count) && count >= 0);

function fault(what: string, cause?: unknown): Error {
  return new Error(`This isn't a safetensors file: ${what}.`, { cause });
}
