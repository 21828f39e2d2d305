/** An array of unsigned bytes in the IDX format, as http://yann.lecun.com/exdb/mnist describes it. */
export interface IdxArray {
  /** Sizes, slowest first: `[60000, 28, 28]` for MNIST's training images. */
  readonly shape: readonly number[];
  /** The elements in row-major order; a view of the bytes given, not a copy. */
  readonly data: Uint8Array<ArrayBuffer>;
}

const unsignedByte = 0x08;

/**
 * Reads an IDX file of unsigned bytes with as many dimensions as `shape` has; `null` in it stands for any size.
 * `name` is what errors call the file.
 *
 * @throws when the magic number, the sizes or the length is wrong: a short file and trailing bytes are both refused.
 */
export function parseIdx(bytes: Uint8Array<ArrayBuffer>, shape: readonly (number | null)[], name: string): IdxArray {
  const headerBytes = 4 + 4 * shape.length;
  if (bytes.byteLength < headerBytes)
    throw new Error(
      `${name} is too short for an IDX file: it has ${bytes.byteLength} bytes, and its header alone takes ${headerBytes}.`,
    );
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const magic = view.getUint32(0);
  const expectedMagic = (unsignedByte << 8) | shape.length;
  if (magic !== expectedMagic)
    throw new Error(
      `${name} is not an IDX file of unsigned bytes in ${shape.length} dimensions: it begins with ${hex(magic)} instead of ${hex(expectedMagic)}.`,
    );
  const sizes = shape.map((_, dimension) => view.getUint32(4 + 4 * dimension));
  if (sizes.some((size, dimension) => shape[dimension] !== null && shape[dimension] !== size))
    throw new Error(
      `${name} has the shape [${sizes.join(", ")}], but [${shape.map((size) => size ?? "any").join(", ")}] was expected.`,
    );
  const count = sizes.reduce((product, size) => product * size, 1);
  const present = bytes.byteLength - headerBytes;
  if (present < count)
    throw new Error(`${name} ends early: its header announces ${count} bytes of data, of which ${present} are there.`);
  if (present > count)
    throw new Error(`${name} has ${present - count} bytes after the ${count} that its header announces.`);
  return { shape: sizes, data: bytes.subarray(headerBytes) };
}

const hex = (value: number) => `0x${value.toString(16).padStart(8, "0")}`;
