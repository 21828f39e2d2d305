/** The four files of MNIST, as its authors published them. */
export const mnistFiles = {
  trainImages: {
    file: "train-images-idx3-ubyte",
    shape: [60_000, 28, 28],
    sha256: "ba891046e6505d7aadcbbe25680a0738ad16aec93bde7f9b65e87a2fc25776db",
  },
  trainLabels: {
    file: "train-labels-idx1-ubyte",
    shape: [60_000],
    sha256: "65a50cbbf4e906d70832878ad85ccda5333a97f0f4c3dd2ef09a8a9eef7101c5",
  },
  validationImages: {
    file: "t10k-images-idx3-ubyte",
    shape: [10_000, 28, 28],
    sha256: "0fa7898d509279e482958e8ce81c8e77db3f2f8254e26661ceb7762c4d494ce7",
  },
  validationLabels: {
    file: "t10k-labels-idx1-ubyte",
    shape: [10_000],
    sha256: "ff7bcfd416de33731a308c3f266cc351222c34898ecbeaf847f06e48f7ec33f2",
  },
} as const;

export type MnistPart = keyof typeof mnistFiles;
export const mnistParts: readonly MnistPart[] = ["trainImages", "trainLabels", "validationImages", "validationLabels"];

/** Where the server has the assets, below its origin. */
export const mnistPath = "/data/mnist/";

/** Length of a part's IDX file in bytes: magic number, sizes, elements. */
export function idxBytes(part: MnistPart): number {
  const { shape } = mnistFiles[part];
  return 4 + 4 * shape.length + shape.reduce<number>((product, size) => product * size, 1);
}

/** One file as it is transferred: the part's IDX file, compressed with gzip. */
export interface MnistAsset {
  /** Its name below `mnistPath`. */
  readonly name: string;
  readonly bytes: number;
  /** SHA-256 of the compressed bytes, hex. */
  readonly sha256: string;
}

/** `manifest.json`: what to fetch, and what it must turn out to be. */
export type MnistManifest = Readonly<Record<MnistPart, MnistAsset>>;

export const assetName = (part: MnistPart) => `${mnistFiles[part].file}.gz`;

/** Checks a parsed `manifest.json`. @throws a sentence naming what is missing. */
export function readMnistManifest(value: unknown): MnistManifest {
  const asset = (part: MnistPart): MnistAsset => {
    const entry = isRecord(value) ? value[part] : undefined;
    if (!isRecord(entry)) throw new Error(`The list of MNIST's files has no entry ${part}.`);
    const { name, bytes, sha256 } = entry;
    // Gzip can't blow up bytes that don't compress by more than 0.1% and a header.
    const limit = 1.01 * idxBytes(part) + 1024;
    if (name !== assetName(part)) throw new Error(`The list of MNIST's files has another name for ${part}: ${name}.`);
    if (typeof bytes !== "number" || !Number.isInteger(bytes) || bytes <= 0 || bytes > limit)
      throw new Error(`The list of MNIST's files has an impossible length for ${name}: ${bytes}.`);
    if (typeof sha256 !== "string" || !/^[0-9a-f]{64}$/.test(sha256))
      throw new Error(`The list of MNIST's files has no SHA-256 for ${name}.`);
    return { name, bytes, sha256 };
  };
  return {
    trainImages: asset("trainImages"),
    trainLabels: asset("trainLabels"),
    validationImages: asset("validationImages"),
    validationLabels: asset("validationLabels"),
  };
}

const isRecord = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === "object" && value !== null;
