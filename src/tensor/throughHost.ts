import { deferred } from "../base/deferred";
import type { PendingRead } from "../gpu";
import { currentRecording, storageOf } from "./apply";
import { mul, to } from "./operators/elementwise";
import { startRead } from "./runtime";
import { describeShape, OperatorError, type Shape, sizeOf } from "./shape";
import { newStorage } from "./storage";
import { type GradientFunction, Tensor } from "./tensor";

/**
 * A float32 tensor that the host makes of another one's values, in the middle of what is recorded: what comes before runs, `compute` gets the values,
 * and what needs the result waits for it. Nothing is flushed by this.
 * @param of floats; narrow ones are read as float32.
 * @param shape the result's.
 * @param compute must not wait for anything that is recorded after this. Where it is rejected, whoever uses the result sees why.
 * @param gradFn how the result is differentiated, if it is.
 */
export function throughHost(
  of: Tensor,
  shape: Shape,
  compute: (values: Float32Array<ArrayBuffer>) => Promise<Float32Array<ArrayBuffer>>,
  gradFn: GradientFunction | null = null,
): Tensor {
  const recording = currentRecording();
  const input = to(of, "float32");
  const isNew = input.source.kind === "node" && input.source.recording === recording;
  // What has memory of its own may be changed later on.
  const source = storageOf(isNew ? input : mul(input, 1));
  const read = deferred<PendingRead>();
  recording.milestones.push({
    storage: source,
    reached: (device) => read.resolve(startRead(device, source)),
    failed: read.reject,
  });
  const storage = newStorage(sizeOf(shape), `a tensor of shape ${describeShape(shape)} that the host makes`);
  const { memory } = storage;
  memory.isFromElsewhere = true;
  memory.arrival = read.promise
    .then((pending) => pending.finish((bytes) => new Float32Array(bytes, 0, source.length).slice()))
    .then(compute)
    .then((values) => {
      if (values.length !== storage.length)
        throw new OperatorError("throughHost", `got ${values.length} values; expected ${storage.length}`);
      memory.write(values);
    })
    .catch((reason: unknown) => {
      memory.failure = reason instanceof Error ? reason : new Error(String(reason));
    })
    .finally(() => {
      memory.arrival = null;
    });
  return new Tensor(shape, "float32", { kind: "storage", storage }, gradFn !== null, gradFn);
}
