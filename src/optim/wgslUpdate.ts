import type { UpdateFormula } from "../tensor/index";
import type { Arithmetic, UpdateRule } from "./rules/rule";

/** A rule's formula in WGSL. Its tensors are the weights, the arrays of state, then the gradients. */
export function wgslFormula(name: string, rule: UpdateRule): UpdateFormula {
  const lines: string[] = [];
  const define = (expression: string) => {
    const value = `v${lines.length}`;
    lines.push(`let ${value} = ${expression};`);
    return value;
  };
  const arithmetic: Arithmetic<string> = {
    add: (a, b) => define(`${a} + ${b}`),
    subtract: (a, b) => define(`${a} - ${b}`),
    multiply: (a, b) => define(`${a} * ${b}`),
    divide: (a, b) => define(`${a} / ${b}`),
    maximum: (a, b) => define(`max(${a}, ${b})`),
    squareRoot: (a) => define(`sqrt(${a})`),
    negate: (a) => define(`-${a}`),
    absolute: (a) => define(`abs(${a})`),
    sign: (a) => define(`select(vec4f(), vec4f(1.0), ${a} > vec4f()) - select(vec4f(), vec4f(1.0), ${a} < vec4f())`),
    flush: (a) => define(`select(${a}, vec4f(), abs(${a}) < vec4f(1.1754944e-38))`),
  };
  const scalars = Object.keys(rule.scalars);
  const updated = rule.update(arithmetic, {
    weight: "t0",
    state: rule.state.map((_, index) => `t${index + 1}`),
    gradient: `t${rule.state.length + 1}`,
    scalar: (scalar) => `s${scalars.indexOf(scalar)}`,
  });
  const assignments = [updated.weight, ...updated.state].map((value, index) => `t${index} = ${value};`);
  return { name, statements: [...lines, ...assignments].join("\n") };
}
