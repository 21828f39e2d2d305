import { fromHalf } from "../base/float16";

/**
 * Reads NumPy's `.npy` (https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html): a magic number, a version,
 * and a Python dictionary as text that gives the values' type, order and shape; then the values.
 */

/** An array in the types that tensors have; `tensor(data, { shape, dtype })` takes it. */
export type NpyArray =
  | { readonly shape: readonly number[]; readonly dtype: "float32"; readonly data: Float32Array<ArrayBuffer> }
  | { readonly shape: readonly number[]; readonly dtype: "int32"; readonly data: Int32Array<ArrayBuffer> }
  | { readonly shape: readonly number[]; readonly dtype: "bool"; readonly data: Uint8Array<ArrayBuffer> };

interface ElementKind {
  readonly bytes: number;
  readonly dtype: NpyArray["dtype"];
  readonly read: (view: DataView, offset: number, littleEndian: boolean) => number | bigint;
}

const kinds: Readonly<Record<string, ElementKind>> = {
  f2: { bytes: 2, dtype: "float32", read: (view, at, little) => fromHalf(view.getUint16(at, little)) },
  f4: { bytes: 4, dtype: "float32", read: (view, at, little) => view.getFloat32(at, little) },
  f8: { bytes: 8, dtype: "float32", read: (view, at, little) => view.getFloat64(at, little) },
  i1: { bytes: 1, dtype: "int32", read: (view, at) => view.getInt8(at) },
  i2: { bytes: 2, dtype: "int32", read: (view, at, little) => view.getInt16(at, little) },
  i4: { bytes: 4, dtype: "int32", read: (view, at, little) => view.getInt32(at, little) },
  i8: { bytes: 8, dtype: "int32", read: (view, at, little) => view.getBigInt64(at, little) },
  u1: { bytes: 1, dtype: "int32", read: (view, at) => view.getUint8(at) },
  u2: { bytes: 2, dtype: "int32", read: (view, at, little) => view.getUint16(at, little) },
  u4: { bytes: 4, dtype: "int32", read: (view, at, little) => view.getUint32(at, little) },
  u8: { bytes: 8, dtype: "int32", read: (view, at, little) => view.getBigUint64(at, little) },
  b1: { bytes: 1, dtype: "bool", read: (view, at) => (view.getUint8(at) === 0 ? 0 : 1) },
};

const magic = [0x93, 0x4e, 0x55, 0x4d, 0x50, 0x59];

/**
 * Reads a `.npy` file of versions 1 to 3: floats of 2, 4 and 8 bytes as float32, integers of any size as int32, and
 * booleans, of either byte order, in C's or Fortran's order. The result is in C's.
 * @param name what errors call the file.
 * @throws Error saying what is wrong with the file, which type it has that tensors don't, or which integer is beyond
 * int32's range.
 */
export function readNpy(bytes: Uint8Array, name = "The file"): NpyArray {
  const fault = (what: string) => new Error(`${name} isn't a .npy file that can be read: ${what}.`);
  if (magic.some((byte, i) => bytes[i] !== byte)) throw fault("it doesn't begin with NumPy's magic number");
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const version = bytes[6] ?? 0;
  if (version < 1 || version > 3) throw fault(`its version is ${version}, and there are 1, 2 and 3`);
  const lengthBytes = version === 1 ? 2 : 4;
  const start = 8 + lengthBytes;
  if (bytes.length < start) throw fault("it ends within its header");
  const headerLength = version === 1 ? view.getUint16(8, true) : view.getUint32(8, true);
  const begin = start + headerLength;
  if (begin > bytes.length)
    throw fault(`its header should have ${headerLength} bytes, and only ${bytes.length - start} are there`);
  const text = new TextDecoder(version === 3 ? "utf-8" : "latin1").decode(bytes.subarray(start, begin));
  const { type, isFortran, shape } = readDictionary(text, fault);
  const kind = Object.hasOwn(kinds, type.slice(1)) ? kinds[type.slice(1)] : undefined;
  if (!kind || !"<>|=".includes(type.charAt(0)))
    throw fault(`its values have the type ${type}; expected one of ${Object.keys(kinds).join(", ")}`);
  const count = shape.reduce((product, size) => product * size, 1);
  const present = bytes.length - begin;
  if (count * kind.bytes !== present)
    throw fault(
      `[${shape.join(", ")}] of ${type} takes ${count * kind.bytes} bytes, and ${present} are there behind the header`,
    );
  const littleEndian = type.charAt(0) !== ">";
  const at = isFortran ? fortranOrder(shape) : (index: number) => index;
  const read = (index: number) => kind.read(view, begin + at(index) * kind.bytes, littleEndian);
  switch (kind.dtype) {
    case "float32":
      return { shape, dtype: "float32", data: fill(new Float32Array(count), (index) => Number(read(index))) };
    case "bool":
      return { shape, dtype: "bool", data: fill(new Uint8Array(count), (index) => Number(read(index))) };
    case "int32":
      return { shape, dtype: "int32", data: fill(new Int32Array(count), (index) => int32(read(index), index, name)) };
  }
}

function fill<Values extends Float32Array | Int32Array | Uint8Array>(
  values: Values,
  at: (index: number) => number,
): Values {
  for (let index = 0; index < values.length; index++) values[index] = at(index);
  return values;
}

function int32(value: number | bigint, index: number, name: string): number {
  const number = Number(value);
  if (number < -(2 ** 31) || number >= 2 ** 31)
    throw new Error(
      `${name} has the integer ${value} at ${index}, which int32, the integers that tensors have, can't hold.`,
    );
  return number;
}

/** Where an element, counted in C's order, lies in Fortran's. */
function fortranOrder(shape: readonly number[]): (index: number) => number {
  return (index) => {
    let rest = index;
    let place = 0;
    let stride = shape.reduce((product, size) => product * size, 1);
    for (let d = shape.length - 1; d >= 0; d--) {
      const size = shape[d] ?? 1;
      stride /= size;
      place += (rest % size) * stride;
      rest = Math.floor(rest / size);
    }
    return place;
  };
}

/** The header's dictionary: {'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }. */
function readDictionary(text: string, fault: (what: string) => Error) {
  const entries = new Map<string, string>();
  // A tuple, a text or a word behind each key; nothing else stands in a header that tensors can be made of.
  const pair = /\s*(['"])(\w+)\1\s*:\s*(\([\d\s,L]*\)|'[^']*'|"[^"]*"|\w+)\s*(,|(?=\}))/y;
  const open = /^\s*\{/.exec(text);
  let at = open ? open[0].length : 0;
  for (;;) {
    pair.lastIndex = at;
    const match = pair.exec(text);
    if (!match) break;
    entries.set(match[2] ?? "", match[3] ?? "");
    at = pair.lastIndex;
  }
  if (!open || !/^\s*\}\s*$/.test(text.slice(at)))
    throw fault(
      `its header ${JSON.stringify(text.slice(0, 200).trim())} isn't a dictionary of descr, fortran_order and shape`,
    );
  const [descr, order, tuple] = ["descr", "fortran_order", "shape"].map((key) => entries.get(key));
  const type = /^(['"])(.*)\1$/.exec(descr ?? "")?.[2];
  if (type === undefined || entries.size !== 3)
    throw fault("its header has other keys than descr, fortran_order and shape");
  if (order !== "True" && order !== "False") throw fault(`its fortran_order is ${order}`);
  const sizes = /^\((.*)\)$/s.exec(tuple ?? "")?.[1];
  const shape = sizes
    ?.split(",")
    .map((size) => size.trim().replace(/L$/, ""))
    .filter((size) => size !== "")
    .map(Number);
  if (!shape?.every((size) => Number.isSafeInteger(size))) throw fault(`its shape is ${tuple}`);
  return { type, isFortran: order === "True", shape };
}
