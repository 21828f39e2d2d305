import { expect, test } from "vitest";
import { readNpz } from "./npz";

const fromBase64 = (text: string) => Uint8Array.from(atob(text), (character) => character.charCodeAt(0));

/** np.savez(w=np.arange(6).reshape(2, 3), b=np.array([True, False])). */
const stored = () =>
  fromBase64(
    "UEsDBBQAAAAAAAAAIQBZm9p9sAAAALAAAAAFABQAdy5ucHkBABAAsAAAAAAAAACwAAAAAAAAAJNOVU1QWQEAdgB7J2Rlc2NyJzogJzxpOCcs" +
      "ICdmb3J0cmFuX29yZGVyJzogRmFsc2UsICdzaGFwZSc6ICgyLCAzKSwgfSAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAg" +
      "ICAgICAgICAgICAgICAgICAgICAKAAAAAAAAAAABAAAAAAAAAAIAAAAAAAAAAwAAAAAAAAAEAAAAAAAAAAUAAAAAAAAAUEsDBBQAAAAAAAAA" +
      "IQDuGbtdggAAAIIAAAAFABQAYi5ucHkBABAAggAAAAAAAACCAAAAAAAAAJNOVU1QWQEAdgB7J2Rlc2NyJzogJ3xiMScsICdmb3J0cmFuX29y" +
      "ZGVyJzogRmFsc2UsICdzaGFwZSc6ICgyLCksIH0gICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAg" +
      "ICAgICAgICAKAQBQSwECFAMUAAAAAAAAACEAWZvafbAAAACwAAAABQAAAAAAAAAAAAAAgAEAAAAAdy5ucHlQSwECFAMUAAAAAAAAACEA7hm7" +
      "XYIAAACCAAAABQAAAAAAAAAAAAAAgAHnAAAAYi5ucHlQSwUGAAAAAAIAAgBmAAAAoAEAAAAA",
  );

/** np.savez_compressed(w=np.zeros((10, 10), np.float32), s=np.array(7.0)). */
const deflated = () =>
  fromBase64(
    "UEsDBBQAAAAIAAAAIQD4ziyRTQAAABACAAAFABQAdy5ucHkBABAAEAIAAAAAAABNAAAAAAAAAJvsF+obEMnIUMZQrZ6SWpxcpG6loG6TZqKu" +
      "o6Cell9UUpSYF59flJIKEndLzClOBYoXZyQWpAL5GoYGOgqGBpo6CrUKZAIuhlEwqAAAUEsDBBQAAAAIAAAAIQBsLCERRwAAAIgAAAAFABQA" +
      "cy5ucHkBABAAiAAAAAAAAABHAAAAAAAAAJvsF+obEMnIUMZQrZ6SWpxcpG6loG6TZqGuo6Cell9UUpSYF59flJIKEndLzClOBYoXZyQWpAL5" +
      "Gpo6CrUKFAEuBjCQcQAAUEsBAhQDFAAAAAgAAAAhAPjOLJFNAAAAEAIAAAUAAAAAAAAAAAAAAIABAAAAAHcubnB5UEsBAhQDFAAAAAgAAAAh" +
      "AGwsIRFHAAAAiAAAAAUAAAAAAAAAAAAAAIABhAAAAHMubnB5UEsFBgAAAAACAAIAZgAAAAIBAAAAAA==",
  );

test("NumPy's own archives are read, stored and deflated", async () => {
  expect(await readNpz(stored())).toEqual(
    new Map([
      ["w", { shape: [2, 3], dtype: "int32", data: Int32Array.of(0, 1, 2, 3, 4, 5) }],
      ["b", { shape: [2], dtype: "bool", data: Uint8Array.of(1, 0) }],
    ]),
  );
  expect(await readNpz(deflated())).toEqual(
    new Map([
      ["w", { shape: [10, 10], dtype: "float32", data: new Float32Array(100) }],
      ["s", { shape: [], dtype: "float32", data: Float32Array.of(7) }],
    ]),
  );
});

/** The archive with other bytes; the first entry of the directory begins at `directory`. */
function changed(make: () => Uint8Array<ArrayBuffer>, change: (view: DataView, directory: number) => void) {
  const bytes = make();
  const view = new DataView(bytes.buffer);
  change(view, view.getUint32(bytes.length - 6, true));
  return bytes;
}

test.each<[string, () => Uint8Array<ArrayBuffer>, string]>([
  ["nothing", () => new Uint8Array(0), "it has no directory at its end"],
  ["an archive that is cut off", () => stored().subarray(0, 400), "it has no directory at its end (is it cut off?)"],
  [
    "a directory elsewhere",
    () => changed(stored, (view) => view.setUint32(view.byteLength - 6, 3, true)),
    "entry 0 of its 2",
  ],
  [
    "more entries than there are",
    () => changed(stored, (view) => view.setUint16(view.byteLength - 12, 9, true)),
    "entry 2 of its 9",
  ],
  [
    "a name beyond the directory",
    () => changed(stored, (view, at) => view.setUint16(at + 28, 60_000, true)),
    "passes the directory's end",
  ],
  ["an encrypted file", () => changed(stored, (view, at) => view.setUint16(at + 8, 1, true)), "w.npy is encrypted"],
  [
    "a size of 4 GiB",
    () => changed(stored, (view, at) => view.setUint32(at + 24, 0xffffffff, true)),
    "w.npy takes 4 GiB or more",
  ],
  [
    "a file beyond the end",
    () => changed(stored, (view, at) => view.setUint32(at + 20, 5000, true)),
    "w.npy passes the file's end",
  ],
  [
    "a file elsewhere",
    () => changed(stored, (view, at) => view.setUint32(at + 42, 9, true)),
    "w.npy isn't where its directory says",
  ],
  [
    "an unknown method",
    () => changed(stored, (view, at) => view.setUint16(at + 10, 12, true)),
    "w.npy is packed by method 12",
  ],
  [
    "a wrong size",
    () => changed(stored, (view, at) => view.setUint32(at + 24, 9, true)),
    "w.npy should have 9 bytes; it has 176",
  ],
  [
    "more than was said",
    () => changed(deflated, (view, at) => view.setUint32(at + 24, 9, true)),
    "w.npy should have 9 bytes; it has more",
  ],
  ["less than was said", () => changed(deflated, (view, at) => view.setUint32(at + 24, 9999, true)), "it has 528"],
  [
    "bytes that don't inflate",
    () => changed(deflated, (view) => view.setUint32(55, 0xffffffff, true)),
    "w.npy can't be unpacked",
  ],
  ["damaged bytes", () => changed(stored, (view) => view.setUint8(200, 9)), "w.npy is damaged"],
])("refuses %s with a sentence", async (_, make, sentence) => {
  await expect(readNpz(make())).rejects.toThrow(sentence);
});
