import { expect, test } from "vitest";
import { concatBytes, equalBytes, fromBase64Url, fromHex, toBase64Url, toHex } from "./bytes";

const every = Uint8Array.from({ length: 256 }, (_, byte) => byte);

test("hexadecimal and base64url give back every byte at every length", () => {
  for (let length = 0; length <= 256; length += 1) {
    const bytes = every.slice(0, length);
    expect(fromHex(toHex(bytes))).toEqual(bytes);
    expect(fromBase64Url(toBase64Url(bytes))).toEqual(bytes);
  }
  expect(toHex(Uint8Array.of(0, 1, 254, 255))).toBe("0001feff");
  expect(toBase64Url(Uint8Array.of(251, 255, 254))).toBe("-__-");
});

test("what isn't an encoding is refused", () => {
  for (const text of ["0", "0g", "00 "]) expect(() => fromHex(text)).toThrow(RangeError);
  for (const text of ["a", "aa==", "a+b/", "ab\n"]) expect(() => fromBase64Url(text)).toThrow(RangeError);
});

test("bytes are joined and compared", () => {
  expect(concatBytes(Uint8Array.of(1), new Uint8Array(0), Uint8Array.of(2, 3))).toEqual(Uint8Array.of(1, 2, 3));
  expect(equalBytes(Uint8Array.of(1, 2), Uint8Array.of(1, 2))).toBe(true);
  expect(equalBytes(Uint8Array.of(1, 2), Uint8Array.of(1, 3))).toBe(false);
  expect(equalBytes(Uint8Array.of(1, 2), Uint8Array.of(1))).toBe(false);
});
