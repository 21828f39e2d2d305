import { describe, expect, test } from "vitest";
import { parseIdx } from "./idx";

const idx = (magic: number, sizes: readonly number[], data: readonly number[]) => {
  const header = [magic, ...sizes].flatMap((value) => [value >>> 24, value >>> 16, value >>> 8, value]);
  return Uint8Array.from([...header, ...data]);
};

describe("an IDX file", () => {
  test("gives its shape and its bytes without copying", () => {
    const bytes = idx(0x0803, [2, 1, 3], [1, 2, 3, 4, 5, 6]);
    const array = parseIdx(bytes, [null, 1, 3], "digits");
    expect(array.shape).toEqual([2, 1, 3]);
    expect([...array.data]).toEqual([1, 2, 3, 4, 5, 6]);
    expect(array.data.buffer).toBe(bytes.buffer);
  });

  test("is read from the middle of a larger buffer", () => {
    const bytes = idx(0x0801, [2], [7, 8]);
    const larger = new Uint8Array(bytes.length + 5);
    larger.set(bytes, 3);
    expect([...parseIdx(larger.subarray(3, 3 + bytes.length), [2], "labels").data]).toEqual([7, 8]);
  });

  test("may hold no elements", () => {
    expect(parseIdx(idx(0x0801, [0], []), [null], "labels").data.length).toBe(0);
  });

  test.each([
    ["another magic number", idx(0x0802, [2], [1, 2]), "it begins with 0x00000802 instead of 0x00000801"],
    ["floats", idx(0x0d01, [2], [1, 2]), "it begins with 0x00000d01"],
    ["another count", idx(0x0801, [3], [1, 2, 3]), "has the shape [3], but [2] was expected"],
    ["missing bytes", idx(0x0801, [2], [1]), "ends early: its header announces 2 bytes of data, of which 1 are there"],
    ["bytes too many", idx(0x0801, [2], [1, 2, 3]), "has 1 bytes after the 2 that its header announces"],
    ["half a header", idx(0x0801, [2], []).subarray(0, 6), "it has 6 bytes, and its header alone takes 8"],
    ["nothing", new Uint8Array(0), "it has 0 bytes"],
  ])("with %s is refused with a sentence", (_, bytes, sentence) => {
    expect(() => parseIdx(bytes, [2], "labels")).toThrow(`labels `);
    expect(() => parseIdx(bytes, [2], "labels")).toThrow(sentence);
  });
});
