import { expect, test } from "vitest";
import { readNpy } from "./npy";

const fromBase64 = (text: string) => Uint8Array.from(atob(text), (character) => character.charCodeAt(0));

/** A file with any header, right or wrong, and values behind it. */
function file(header: string, values: ArrayBufferView | readonly number[] = [], version = 1): Uint8Array<ArrayBuffer> {
  const text = new TextEncoder().encode(header);
  const body = ArrayBuffer.isView(values)
    ? new Uint8Array(values.buffer, values.byteOffset, values.byteLength)
    : Uint8Array.from(values);
  const bytes = new Uint8Array((version === 1 ? 10 : 12) + text.length + body.length);
  const view = new DataView(bytes.buffer);
  bytes.set([0x93, ...new TextEncoder().encode("NUMPY"), version, 0]);
  if (version === 1) view.setUint16(8, text.length, true);
  else view.setUint32(8, text.length, true);
  bytes.set(text, bytes.length - body.length - text.length);
  bytes.set(body, bytes.length - body.length);
  return bytes;
}

const header = (descr: string, shape: string, order = "False") =>
  `{'descr': '${descr}', 'fortran_order': ${order}, 'shape': ${shape}, }   \n`;

test("NumPy's own file is read: np.save of np.arange(6).reshape(2, 3) / 2 in float32", () => {
  const bytes = fromBase64(
    "k05VTVBZAQB2AHsnZGVzY3InOiAnPGY0JywgJ2ZvcnRyYW5fb3JkZXInOiBGYWxzZSwgJ3NoYXBlJzogKDIsIDMpLCB9ICAgICAgICAgICAg" +
      "ICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgIAoAAAAAAAAAPwAAgD8AAMA/AAAAQAAAIEA=",
  );
  expect(readNpy(bytes)).toEqual({ shape: [2, 3], dtype: "float32", data: Float32Array.of(0, 0.5, 1, 1.5, 2, 2.5) });
});

test.each<[string, string, ArrayBufferView, readonly number[]]>([
  ["<f2", "float32", Uint16Array.of(0x3c00, 0xc000, 0x7c00), [1, -2, Number.POSITIVE_INFINITY]],
  ["<f4", "float32", Float32Array.of(1.5, -2, Number.NaN), [1.5, -2, Number.NaN]],
  ["<f8", "float32", Float64Array.of(0.1, -2, 1e300), [Math.fround(0.1), -2, Number.POSITIVE_INFINITY]],
  ["|i1", "int32", Int8Array.of(-128, 0, 127), [-128, 0, 127]],
  ["<i2", "int32", Int16Array.of(-32768, 0, 32767), [-32768, 0, 32767]],
  ["<i4", "int32", Int32Array.of(-(2 ** 31), 0, 2 ** 31 - 1), [-(2 ** 31), 0, 2 ** 31 - 1]],
  ["<i8", "int32", BigInt64Array.of(-5n, 0n, 2n ** 31n - 1n), [-5, 0, 2 ** 31 - 1]],
  ["|u1", "int32", Uint8Array.of(0, 200, 255), [0, 200, 255]],
  ["<u2", "int32", Uint16Array.of(0, 40_000, 65_535), [0, 40_000, 65_535]],
  ["<u4", "int32", Uint32Array.of(0, 1, 2 ** 31 - 1), [0, 1, 2 ** 31 - 1]],
  ["<u8", "int32", BigUint64Array.of(0n, 1n, 7n), [0, 1, 7]],
  ["|b1", "bool", Uint8Array.of(0, 1, 2), [0, 1, 1]],
  [">i2", "int32", Uint8Array.of(0x01, 0x00, 0xff, 0xff, 0x00, 0x02), [256, -1, 2]],
  [">f4", "float32", Uint8Array.of(0x3f, 0x80, 0, 0, 0xc0, 0, 0, 0, 0, 0, 0, 0), [1, -2, 0]],
])("values of type %s become %s", (descr, dtype, values, expected) => {
  const array = readNpy(file(header(descr, "(3,)"), values));
  expect([array.dtype, array.shape, [...array.data]]).toEqual([dtype, [3], expected]);
});

test("Fortran's order becomes C's, and scalars and empty arrays are arrays too", () => {
  // Element [i, j, k] of shape [2, 3, 2] is 100 i + 10 j + k; Fortran runs over i first.
  const values = Int32Array.from(
    { length: 12 },
    (_, at) => 100 * (at % 2) + 10 * (Math.floor(at / 2) % 3) + Math.floor(at / 6),
  );
  expect([...readNpy(file(header("<i4", "(2, 3, 2)", "True"), values)).data]).toEqual([
    0, 1, 10, 11, 20, 21, 100, 101, 110, 111, 120, 121,
  ]);
  expect(readNpy(file(header("<f4", "()"), Float32Array.of(7)))).toEqual({
    shape: [],
    dtype: "float32",
    data: Float32Array.of(7),
  });
  expect(readNpy(file(header("<f4", "(0, 5)", "True"))).shape).toEqual([0, 5]);
});

test("versions 2 and 3, other quotes and the long integers of Python 2 are read", () => {
  for (const version of [2, 3])
    expect([...readNpy(file(header("<i4", "(1,)"), Int32Array.of(4), version)).data]).toEqual([4]);
  const old = `{"shape": (2L,), "descr": "<i4", "fortran_order": False}`;
  expect(readNpy(file(old, Int32Array.of(1, 2))).shape).toEqual([2]);
});

test.each<[string, Uint8Array, string]>([
  ["nothing", new Uint8Array(0), "doesn't begin with NumPy's magic number"],
  ["an unknown version", file(header("<f4", "(1,)"), [0, 0, 0, 0], 4), "its version is 4"],
  ["a header that is cut off", file(header("<f4", "(1,)")).subarray(0, 20), "and only 10 are there"],
  ["no header", file("").subarray(0, 9), "it ends within its header"],
  ["code in the header", file("__import__('os')"), "isn't a dictionary of descr, fortran_order and shape"],
  ["text behind the dictionary", file(`${header("<f4", "()")}; x`), "isn't a dictionary"],
  ["a missing key", file("{'descr': '<f4', 'shape': ()}"), "other keys than"],
  ["a further key", file("{'descr': '<f4', 'fortran_order': False, 'shape': (), 'a': 1}"), "other keys than"],
  ["an order that is no truth", file(header("<f4", "()", "1")), "its fortran_order is 1"],
  ["records", file("{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': ()}"), "isn't a dictionary"],
  ["objects", file(header("|O", "(1,)"), [0]), "the type |O"],
  ["a property's name as type", file(header("<constructor", "(1,)"), [0]), "the type <constructor"],
  ["a shape beyond the bytes", file(header("<f4", "(9999999999999,)"), [0, 0, 0, 0]), "takes 39999999999996 bytes"],
  ["a shape that overflows", file(header("<f4", "(9007199254740991, 9007199254740991)")), "bytes, and 0 are there"],
  ["a size beyond integers", file(header("<f4", "(99999999999999999999,)")), "its shape is (99999999999999999999,)"],
  ["bytes left over", file(header("<f4", "(1,)"), [0, 0, 0, 0, 0]), "takes 4 bytes, and 5 are there"],
  [
    "an integer that int32 lacks",
    file(header("<i8", "(1,)"), BigInt64Array.of(2n ** 31n)),
    "has the integer 2147483648 at 0",
  ],
])("refuses %s with a sentence", (_, bytes, sentence) => {
  expect(() => readNpy(bytes)).toThrow(sentence);
});
