import { describeShape, OperatorError, type Shape } from "./shape";
import { newStorage } from "./storage";
import { type GradientFunction, Tensor } from "./tensor";

/**
 * A float32 tensor whose values come later, from elsewhere: operations are recorded with it at once, and what needs it waits. The values must come
 * without anything that is recorded after it, or both wait for ever.
 * @param values one for each element; where they are rejected, whoever uses the tensor sees why.
 * @param gradFn how it was made, if it can be differentiated.
 */
export function arrivingTensor(
  shape: Shape,
  values: Promise<Float32Array<ArrayBuffer>>,
  gradFn: GradientFunction | null = null,
): Tensor {
  const count = shape.reduce((product, size) => product * size, 1);
  const storage = newStorage(count, `a tensor of shape ${describeShape(shape)} that comes from elsewhere`);
  const { memory } = storage;
  memory.arrival = values
    .then((words) => {
      if (words.length !== count)
        throw new OperatorError("arrivingTensor", `got ${words.length} values; expected ${count}`);
      memory.write(words);
    })
    .catch((reason: unknown) => {
      memory.failure = reason instanceof Error ? reason : new Error(String(reason));
    })
    .finally(() => {
      memory.arrival = null;
    });
  return new Tensor(shape, "float32", { kind: "storage", storage }, gradFn !== null, gradFn);
}
