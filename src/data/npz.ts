import { type NpyArray, readNpy } from "./npy";

/**
 * Reads NumPy's `.npz`: a ZIP archive (PKWARE's APPNOTE.TXT) of `.npy` files, stored or deflated.
 */

const signatures = { end: 0x06054b50, entry: 0x02014b50, file: 0x04034b50 } as const;
const endBytes = 22;
const entryBytes = 46;
const fileBytes = 30;
/** The comment behind the archive's end has at most so many bytes. */
const longestComment = 65_535;
const methods = { stored: 0, deflated: 8 } as const;
/** A size of this is one of ZIP64's, beyond what an array holds here. */
const beyond = 0xffffffff;

interface Entry {
  readonly name: string;
  readonly method: number;
  readonly checksum: number;
  readonly compressed: number;
  readonly size: number;
  /** Where the file's own header begins. */
  readonly offset: number;
}

/**
 * The arrays of an `.npz` file by name, as `readNpy` reads them.
 * @param name what errors call the file.
 * @throws Error saying what is wrong with the archive or with which of its files.
 */
export async function readNpz(bytes: Uint8Array<ArrayBuffer>, name = "The file"): Promise<Map<string, NpyArray>> {
  const fault = (what: string, cause?: unknown) =>
    new Error(`${name} isn't an .npz file that can be read: ${what}.`, { cause });
  const arrays = new Map<string, NpyArray>();
  for (const entry of readDirectory(bytes, fault)) {
    const key = entry.name.replace(/\.npy$/, "");
    if (arrays.has(key)) throw fault(`it has two files ${entry.name}`);
    const content = await contentOf(bytes, entry, fault);
    arrays.set(key, readNpy(content, `${entry.name} of ${name.replace(/^The/, "the")}`));
  }
  return arrays;
}

type Fault = (what: string, cause?: unknown) => Error;

/** The archive's directory, which stands at its end. */
function readDirectory(bytes: Uint8Array, fault: Fault): Entry[] {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  let end = bytes.length - endBytes;
  const first = Math.max(0, end - longestComment);
  while (end >= first && view.getUint32(end, true) !== signatures.end) end -= 1;
  if (end < first) throw fault("it has no directory at its end (is it cut off?)");
  const count = view.getUint16(end + 10, true);
  let at = view.getUint32(end + 16, true);
  const entries: Entry[] = [];
  for (let i = 0; i < count; i++) {
    if (at + entryBytes > end || view.getUint32(at, true) !== signatures.entry)
      throw fault(`entry ${i} of its ${count} isn't where its directory should have it`);
    const [nameLength, extraLength, commentLength] = [28, 30, 32].map((field) => view.getUint16(at + field, true));
    const next = at + entryBytes + (nameLength ?? 0) + (extraLength ?? 0) + (commentLength ?? 0);
    if (next > end) throw fault(`entry ${i} of its directory passes the directory's end`);
    const name = new TextDecoder().decode(bytes.subarray(at + entryBytes, at + entryBytes + (nameLength ?? 0)));
    if (view.getUint16(at + 8, true) & 1) throw fault(`${name} is encrypted`);
    const [checksum = 0, compressed = 0, size = 0] = [16, 20, 24].map((field) => view.getUint32(at + field, true));
    const offset = view.getUint32(at + 42, true);
    if ([compressed, size, offset].includes(beyond))
      throw fault(`${name} takes 4 GiB or more, which no array here holds`);
    entries.push({ name, method: view.getUint16(at + 10, true), checksum, compressed, size, offset });
    at = next;
  }
  return entries;
}

async function contentOf(bytes: Uint8Array<ArrayBuffer>, entry: Entry, fault: Fault): Promise<Uint8Array<ArrayBuffer>> {
  const { name, method, checksum, compressed, size, offset } = entry;
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  if (offset + fileBytes > bytes.length || view.getUint32(offset, true) !== signatures.file)
    throw fault(`${name} isn't where its directory says`);
  const start = offset + fileBytes + view.getUint16(offset + 26, true) + view.getUint16(offset + 28, true);
  if (start + compressed > bytes.length) throw fault(`${name} passes the file's end`);
  const packed = bytes.subarray(start, start + compressed);
  const content = method === methods.stored ? packed : await inflate(packed, method, name, size, fault);
  if (content.length !== size) throw fault(`${name} should have ${size} bytes; it has ${content.length}`);
  if (crc32(content) !== checksum) throw fault(`${name} is damaged: its checksum is another one`);
  return content;
}

/** Stops where more comes than the directory says, so that a small file can't ask for all memory. */
async function inflate(
  packed: Uint8Array<ArrayBuffer>,
  method: number,
  name: string,
  size: number,
  fault: Fault,
): Promise<Uint8Array<ArrayBuffer>> {
  if (method !== methods.deflated)
    throw fault(`${name} is packed by method ${method}; expected 0 or 8, stored or deflated`);
  const reader = new Blob([packed]).stream().pipeThrough(new DecompressionStream("deflate-raw")).getReader();
  const parts: Uint8Array[] = [];
  let length = 0;
  for (;;) {
    const { value, done } = await reader.read().catch((cause: unknown) => {
      throw fault(`${name} can't be unpacked`, cause);
    });
    if (done) break;
    parts.push(value);
    length += value.length;
    if (length > size) {
      await reader.cancel();
      throw fault(`${name} should have ${size} bytes; it has more`);
    }
  }
  const content = new Uint8Array(length);
  let at = 0;
  for (const part of parts) {
    content.set(part, at);
    at += part.length;
  }
  return content;
}

const table = Uint32Array.from({ length: 256 }, (_, byte) => {
  let value = byte;
  for (let bit = 0; bit < 8; bit++) value = value & 1 ? (value >>> 1) ^ 0xedb88320 : value >>> 1;
  return value;
});

/** ZIP's checksum: CRC-32 with the reversed polynomial 0xedb88320. */
function crc32(bytes: Uint8Array): number {
  let value = 0xffffffff;
  for (const byte of bytes) value = (value >>> 8) ^ (table[(value ^ byte) & 0xff] ?? 0);
  return (value ^ 0xffffffff) >>> 0;
}
