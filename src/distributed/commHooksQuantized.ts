import { BucketStates, type CommHook, remainder } from "./commHooks";
import { bfloat16Codec, type Codec, float16Codec, int8Codec } from "./commHooksCodecs";

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

/** A bucket as segments of equal length, one for each rank, padded with zeros. */
interface QuantizedState {
  readonly values: Float32Array<ArrayBuffer>;
  readonly decoded: Float32Array<ArrayBuffer>;
  readonly encoded: Uint8Array<ArrayBuffer>;
  readonly received: Uint8Array<ArrayBuffer>;
  /** What encoding took away from this rank's gradients, and from the sum of the segment that it owns. */
  readonly residual: Float32Array<ArrayBuffer> | null;
  readonly ownResidual: Float32Array<ArrayBuffer> | null;
}

/**
 * A reduce-scatter and an all-gather of encoded values: each rank sums up its segment of all ranks' values, in the order of ranks, encodes
 * the sum, and everyone, itself included, uses what that decodes to.
 */
function quantizedHook(codec: Codec, errorFeedback: boolean): CommHook {
  const states = new BucketStates(({ gradients }, { worldSize }) =>
    makeState(codec, gradients.length, worldSize, errorFeedback),
  );
  return async (bucket, group) => {
    const { worldSize, rank } = group;
    const { values, decoded, encoded, received, residual, ownResidual } = states.of(bucket, group);
    const { gradients, narrowed } = bucket;
    const length = values.length / worldSize;
    const bytes = encoded.length / worldSize;
    const segments = <T>(cut: (from: number, to: number) => T, size: number) =>
      Array.from({ length: worldSize }, (_, index) => cut(index * size, (index + 1) * size));

    if (narrowed) {
      // What lies behind them are zeros, as the GPU's padding is.
      encoded.set(narrowed);
      encoded.fill(0, narrowed.length);
    } else {
      values.set(gradients);
      values.fill(0, gradients.length);
      if (residual) for (let i = 0; i < values.length; i += 1) values[i] = values[i]! + residual[i]!;
      codec.encode(values, encoded);
    }
    if (residual) {
      codec.decode(encoded, decoded);
      for (let i = 0; i < values.length; i += 1) residual[i] = remainder(values[i]!, decoded[i]!);
    }
    await group
      .allToAll(
        segments((from, to) => received.subarray(from, to), bytes),
        segments((from, to) => encoded.subarray(from, to), bytes),
      )
      .wait();
    codec.decode(received, decoded);
    const own = values.subarray(rank * length, (rank + 1) * length);
    for (let i = 0; i < length; i += 1) {
      let sum = ownResidual?.[i] ?? 0;
      for (let from = 0; from < worldSize; from += 1) sum = Math.fround(sum + decoded[from * length + i]!);
      own[i] = sum;
    }
    const ownEncoded = encoded.subarray(rank * bytes, (rank + 1) * bytes);
    codec.encode(own, ownEncoded);
    await group.allGatherIntoTensor(received, ownEncoded).wait();
    codec.decode(received, decoded);
    if (ownResidual)
      for (let i = 0; i < length; i += 1) ownResidual[i] = remainder(own[i]!, decoded[rank * length + i]!);
    gradients.set(decoded.subarray(0, gradients.length));
  };
}

function makeState(codec: Codec, count: number, worldSize: number, errorFeedback: boolean): QuantizedState {
  const blocks = Math.ceil(count / worldSize / codec.blockLength);
  const length = blocks * codec.blockLength * worldSize;
  const bytes = blocks * codec.blockBytes * worldSize;
  return {
    values: new Float32Array(length),
    decoded: new Float32Array(length),
    encoded: new Uint8Array(bytes),
    received: new Uint8Array(bytes),
    residual: errorFeedback ? new Float32Array(length) : null,
    ownResidual: errorFeedback ? new Float32Array(length / worldSize) : null,
  };
}
