import { type DType, type Index, slice, type Tensor, tensor } from "../src/tensor/index";
import { decode, type ReferenceArgument, type ReferenceCase, type ReferenceTensor } from "./referenceCase";

/** The type that stands for a reference tensor's: every integer is an int32. */
export const dtypeOf = ({ dtype }: ReferenceTensor): DType =>
  dtype === "float32" || dtype === "bool" ? dtype : "int32";

/** @param floats the type of tensors that the reference has in float32. */
export function toTensor(given: ReferenceTensor, requiresGrad = false, floats: DType = "float32"): Tensor {
  const dtype = dtypeOf(given);
  return tensor(decode(given), { shape: given.shape, dtype: dtype === "float32" ? floats : dtype, requiresGrad });
}

/**
 * One call of the reference, bound to PyTorch's parameter names. Each argument is to be asked for by name: one that
 * nobody asks for fails the call, so that no option is passed over in silence.
 */
export class ReferenceCall {
  readonly tensors: readonly Tensor[];
  readonly #arguments = new Map<string, ReferenceArgument>();
  readonly #unread = new Set<string>();
  readonly #case: ReferenceCase;

  /** @param parameters PyTorch's names in order; a last one that begins with "*" takes all arguments that are left. */
  constructor(reference: ReferenceCase, parameters: readonly string[], floats: DType = "float32") {
    this.#case = reference;
    this.tensors = reference.tensors.map((given, index) =>
      toTensor(given, Boolean(reference.gradients?.[index]), floats),
    );
    const rest = parameters.at(-1)?.startsWith("*") ? parameters.length - 1 : null;
    for (const [index, argument] of reference.args.entries()) {
      if (rest !== null && index >= rest) continue;
      const name = parameters[index];
      if (name === undefined) throw new Error(`The call has ${reference.args.length} arguments for ${parameters}.`);
      this.#arguments.set(name, argument);
    }
    if (rest !== null) this.#arguments.set(parameters[rest] ?? "", reference.args.slice(rest));
    for (const [name, argument] of Object.entries(reference.kwargs)) {
      if (!parameters.includes(name)) throw new Error(`The call has an argument ${name}, which the row doesn't know.`);
      this.#arguments.set(name, argument);
    }
    for (const name of this.#arguments.keys()) this.#unread.add(name);
  }

  get unread(): readonly string[] {
    return [...this.#unread];
  }

  /** Whether an argument was given, null included. */
  has(name: string): boolean {
    return this.#arguments.has(name);
  }

  isBoolean(name: string): boolean {
    return typeof this.#arguments.get(name) === "boolean";
  }

  tensor(name: string): Tensor {
    return this.optionalTensor(name) ?? this.#fail(name, "a tensor");
  }

  optionalTensor(name: string): Tensor | null {
    const argument = this.#take(name);
    return argument === null ? null : (this.#tensorOf(argument) ?? this.#fail(name, "a tensor"));
  }

  tensorList(name: string): Tensor[] {
    const argument = this.#take(name);
    const list =
      Array.isArray(argument) && argument.length === 1 && Array.isArray(argument[0]) ? argument[0] : argument;
    if (!Array.isArray(list)) return this.#fail(name, "a list of tensors");
    return list.map((item) => this.#tensorOf(item) ?? this.#fail(name, "a list of tensors"));
  }

  /** A tensor or a number. */
  operand(name: string): Tensor | number {
    return this.optionalOperand(name) ?? this.#fail(name, "a tensor or a number");
  }

  optionalOperand(name: string): Tensor | number | null {
    const argument = this.#take(name);
    if (argument === null) return null;
    return this.#tensorOf(argument) ?? this.#numberOf(argument) ?? this.#fail(name, "a tensor or a number");
  }

  number(name: string, otherwise?: number): number {
    return this.optionalNumber(name) ?? otherwise ?? this.#fail(name, "a number");
  }

  optionalNumber(name: string): number | null {
    const argument = this.#take(name);
    return argument === null ? null : (this.#numberOf(argument) ?? this.#fail(name, "a number"));
  }

  boolean(name: string, otherwise: boolean): boolean {
    const argument = this.#take(name) ?? otherwise;
    return typeof argument === "boolean" ? argument : this.#fail(name, "true or false");
  }

  /** One of some texts; the first where the argument isn't given. */
  oneOf<Text extends string>(name: string, ...texts: [Text, ...Text[]]): Text {
    const argument = this.#take(name);
    if (argument === null) return texts[0];
    return texts.find((text) => text === argument) ?? this.#fail(name, `one of ${texts.join(", ")}`);
  }

  /** A text where it is one of `texts`, otherwise numbers. */
  textOrNumbers<Text extends string>(name: string, ...texts: Text[]): Text | number | number[] | null {
    const argument = this.#arguments.get(name);
    const text = texts.find((candidate) => candidate === argument);
    if (text === undefined) return this.numbers(name);
    this.#take(name);
    return text;
  }

  /** A text where it is one of `texts`, otherwise a number; null where it isn't given. */
  textOrNumber<Text extends string>(name: string, ...texts: Text[]): Text | number | null {
    const argument = this.#arguments.get(name);
    const text = texts.find((candidate) => candidate === argument);
    if (text === undefined) return this.optionalNumber(name);
    this.#take(name);
    return text;
  }

  /** An element type; null where it isn't given. */
  dtype(name: string): DType | null {
    const argument = this.#take(name);
    if (argument === null) return null;
    if (typeof argument !== "object" || !("$dtype" in argument)) return this.#fail(name, "an element type");
    switch (argument.$dtype) {
      case "float32":
      case "bool":
        return argument.$dtype;
      case "int32":
      case "int64":
        return "int32";
      default:
        return this.#fail(name, "float32, bool, int32 or int64");
    }
  }

  text(name: string): string {
    const argument = this.#take(name);
    return typeof argument === "string" ? argument : this.#fail(name, "a text");
  }

  /** What stands in brackets behind a tensor: one index, or a list of them. */
  indices(name: string): Index[] {
    const argument = this.#take(name);
    // As in PyTorch, a list is taken for a tuple where it has more than numbers.
    const isTuple = Array.isArray(argument) && argument.some((item) => typeof item !== "number");
    const list = isTuple ? argument : [argument];
    return list.map((item) => (item === null ? null : (this.#indexOf(item) ?? this.#fail(name, "indices"))));
  }

  #indexOf(item: ReferenceArgument): Exclude<Index, null> | undefined {
    if (typeof item === "number") return item;
    if (Array.isArray(item)) {
      const numbers = item.map((entry) => this.#numberOf(entry));
      return numbers.every((entry) => entry !== undefined) ? numbers : undefined;
    }
    if (typeof item !== "object" || item === null) return undefined;
    if ("$slice" in item) return slice(...item.$slice);
    return "$ellipsis" in item ? "..." : this.#tensorOf(item);
  }

  /** A number or a pair of lists; null where it isn't given. */
  numberOrLists(name: string): number | [number[], number[]] | null {
    const argument = this.#take(name);
    if (!Array.isArray(argument)) return this.optionalNumber(name);
    const lists = argument.map((list) =>
      Array.isArray(list)
        ? list.map((item) => this.#numberOf(item) ?? this.#fail(name, "lists of numbers"))
        : this.#fail(name, "lists of numbers"),
    );
    return [lists[0] ?? [], lists[1] ?? []];
  }

  /** A number or a list of numbers; null where it isn't given. */
  numbers(name: string): number | number[] | null {
    const argument = this.#take(name);
    if (argument === null) return null;
    if (Array.isArray(argument)) return argument.map((item) => this.#numberOf(item) ?? this.#fail(name, "numbers"));
    return this.#numberOf(argument) ?? this.#fail(name, "numbers");
  }

  /** A number, or a list of numbers in which null stands for what the input has. */
  sizes(name: string): number | (number | null)[] {
    const argument = this.#take(name);
    if (!Array.isArray(argument)) return this.#numberOf(argument) ?? this.#fail(name, "sizes");
    return argument.map((item) => (item === null ? null : (this.#numberOf(item) ?? this.#fail(name, "sizes"))));
  }

  /** An output as PyTorch has it, for calls that depend on its random draws. */
  expectedOutput(index: number): ReferenceTensor {
    const output = this.#case.outputs[index];
    if (!output) throw new Error(`The reference has no output ${index}.`);
    return output;
  }

  /** A list of numbers, also where PyTorch takes them one by one. */
  list(name: string): number[] {
    const numbers = this.#spread(name);
    return numbers.map((item) => this.#numberOf(item) ?? this.#fail(name, "a list of numbers"));
  }

  #spread(name: string): readonly ReferenceArgument[] {
    const argument = this.#take(name);
    if (!Array.isArray(argument)) return this.#fail(name, "a list of numbers");
    return argument.length === 1 && Array.isArray(argument[0]) ? argument[0] : argument;
  }

  #take(name: string): ReferenceArgument {
    this.#unread.delete(name);
    return this.#arguments.get(name) ?? null;
  }

  #tensorOf(argument: ReferenceArgument): Tensor | undefined {
    return typeof argument === "object" && argument !== null && "$tensor" in argument
      ? this.tensors[argument.$tensor]
      : undefined;
  }

  /** A number; also where it is written as text or is the only value of a tensor of integers. */
  #numberOf(argument: ReferenceArgument): number | undefined {
    if (typeof argument === "number") return argument;
    if (typeof argument !== "object" || argument === null) return undefined;
    if ("$float" in argument) return Number(argument.$float.replace("inf", "Infinity"));
    const given = "$tensor" in argument ? this.#case.tensors[argument.$tensor] : undefined;
    return given && given.dtype !== "float32" ? decode(given)[0] : undefined;
  }

  #fail(name: string, expected: string): never {
    throw new Error(
      `The argument ${name} is ${JSON.stringify(this.#arguments.get(name) ?? null)}; the row expects ${expected}.`,
    );
  }
}
