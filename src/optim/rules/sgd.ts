import type { SgdSpec } from "../spec";
import { descentDirection, type UpdateRule } from "./rule";

/** torch.optim.SGD: v = momentum v + (1 - dampening) g, where the first step takes v = g; w = w - lr v. */
export function sgdRule(spec: SgdSpec): UpdateRule {
  const { momentum, dampening, nesterov, weightDecay } = spec;
  return {
    state: momentum === 0 ? [] : ["momentumBuffer"],
    scalars: {
      learningRate: (_, learningRate) => learningRate,
      weightDecay: () => weightDecay,
      momentum: (_, __, value) => value,
      undamped: (step) => (step === 1 ? 1 : 1 - dampening),
    },
    update(arithmetic, inputs) {
      const { add, subtract, multiply, flush } = arithmetic;
      const {
        weight,
        state: [previous],
        scalar,
      } = inputs;
      const direction = descentDirection(arithmetic, inputs, spec);
      const descend = (along: typeof weight) => subtract(weight, multiply(scalar("learningRate"), along));
      if (previous === undefined) return { weight: descend(direction), state: [] };
      const buffer = flush(add(multiply(scalar("momentum"), previous), multiply(scalar("undamped"), direction)));
      const along = nesterov ? add(direction, multiply(scalar("momentum"), buffer)) : buffer;
      return { weight: descend(along), state: [buffer] };
    },
  };
}
