import { BucketStates, type CommHook, remainder } from "./commHooks";
import { bfloat16Codec, type Codec, float16Codec, int8Codec } from "./commHooksCodecs";
import type { ProcessGroup } from "./processGroup";

export interface Int8HookOptions {
  /** Values that share a scale, a multiple of 4. Default: 256. */
  readonly blockLength?: number;
  /** Whether what rounding took away is added to the next step's gradients. Default: true. */
  readonly errorFeedback?: boolean;
}

/** Sends gradients as float16, half the bytes, and rounds them on the GPU where they come from there. The mean of values up to 65,504 doesn't overflow, as each rank gives its part of it. */
export const fp16CompressHook: CommHook = Object.assign(quantizedHook(float16Codec, false), {
  narrowType: "float16" as const,
});

/** Sends gradients as bfloat16 in the same way, with float32's range and 8 bits of precision. */
export const bf16CompressHook: CommHook = Object.assign(quantizedHook(bfloat16Codec, false), {
  narrowType: "bfloat16" as const,
});

/** Sends gradients as int8 with a scale for each block, about a quarter of the bytes. */
export function int8CompressHook({ blockLength = 256, errorFeedback = true }: Int8HookOptions = {}): CommHook {
  return quantizedHook(int8Codec(blockLength), errorFeedback);
}

/** What encoding took away from this rank's gradients, and from the sum of the segment that it owns. */
interface Residuals {
  readonly all: Float32Array<ArrayBuffer>;
  readonly own: Float32Array<ArrayBuffer>;
}

/** Memory for a bucket on its way: two of a segment's values, and the whole as bytes, to send and received. */
interface Scratch {
  readonly values: Float32Array<ArrayBuffer>;
  readonly decoded: Float32Array<ArrayBuffer>;
  readonly encoded: Uint8Array<ArrayBuffer>;
  readonly received: Uint8Array<ArrayBuffer>;
}

/**
 * A reduce-scatter and an all-gather of encoded values, in as many equal segments as there are ranks, padded with zeros: each rank sums up its
 * segment of all ranks' values, in the order of ranks, encodes the sum, and everyone, itself included, uses what that decodes to.
 */
function quantizedHook(codec: Codec, errorFeedback: boolean): CommHook {
  /** Values of a segment. */
  const lengthOf = (count: number, worldSize: number) =>
    Math.ceil(count / worldSize / codec.blockLength) * codec.blockLength;
  const residualsOf = new BucketStates(({ gradients }, { worldSize }): Residuals => {
    const length = lengthOf(gradients.length, worldSize);
    return { all: new Float32Array(length * worldSize), own: new Float32Array(length) };
  });
  // A group has one bucket at a time.
  const scratches = new WeakMap<ProcessGroup, Scratch>();
  const scratchOf = (group: ProcessGroup, length: number, bytes: number): Scratch => {
    let whole = scratches.get(group);
    if (whole === undefined || whole.values.length < length || whole.encoded.length < bytes * group.worldSize) {
      whole = {
        values: new Float32Array(length),
        decoded: new Float32Array(length),
        encoded: new Uint8Array(bytes * group.worldSize),
        received: new Uint8Array(bytes * group.worldSize),
      };
      scratches.set(group, whole);
    }
    return {
      values: whole.values.subarray(0, length),
      decoded: whole.decoded.subarray(0, length),
      encoded: whole.encoded.subarray(0, bytes * group.worldSize),
      received: whole.received.subarray(0, bytes * group.worldSize),
    };
  };
  return async (bucket, group) => {
    const { worldSize, rank } = group;
    const { gradients, narrowed } = bucket;
    const length = lengthOf(gradients.length, worldSize);
    const bytes = (length / codec.blockLength) * codec.blockBytes;
    const { values, decoded, encoded, received } = scratchOf(group, length, bytes);
    const residuals = errorFeedback ? residualsOf.of(bucket, group) : null;
    const ranks = Array.from({ length: worldSize }, (_, index) => index);
    const segmentOf = (of: Uint8Array<ArrayBuffer>, index: number) => of.subarray(index * bytes, (index + 1) * bytes);

    if (narrowed) {
      encoded.set(narrowed);
      encoded.fill(0, narrowed.length);
    } else
      for (const segment of ranks) {
        const given = gradients.subarray(segment * length, (segment + 1) * length);
        values.set(given);
        values.fill(0, given.length);
        const residual = residuals?.all.subarray(segment * length, (segment + 1) * length);
        if (residual) for (let i = 0; i < length; i += 1) values[i] = values[i]! + residual[i]!;
        codec.encode(values, segmentOf(encoded, segment));
        if (!residual) continue;
        codec.decode(segmentOf(encoded, segment), decoded);
        for (let i = 0; i < length; i += 1) residual[i] = remainder(values[i]!, decoded[i]!);
      }
    await group
      .allToAll(
        ranks.map((from) => segmentOf(received, from)),
        ranks.map((to) => segmentOf(encoded, to)),
      )
      .wait();
    if (residuals) values.set(residuals.own);
    else values.fill(0);
    for (const from of ranks) {
      codec.decode(segmentOf(received, from), decoded);
      for (let i = 0; i < length; i += 1) values[i] = values[i]! + decoded[i]!;
    }
    const own = segmentOf(encoded, rank);
    codec.encode(values, own);
    if (residuals) {
      codec.decode(own, decoded);
      for (let i = 0; i < length; i += 1) residuals.own[i] = remainder(values[i]!, decoded[i]!);
    }
    await group.allGatherIntoTensor(received, own).wait();
    for (const segment of ranks) {
      codec.decode(segmentOf(received, segment), decoded);
      const into = gradients.subarray(segment * length, (segment + 1) * length);
      into.set(decoded.subarray(0, into.length));
    }
  };
}
