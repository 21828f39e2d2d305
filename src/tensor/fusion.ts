import { type Access, type Grid, type Shader, spread } from "../gpu";
import { type ComputeType, computeType, type DType, isNarrow, type NarrowType, wgslType } from "./dtype";
import { enableHalves, packFunction, roundFunction, unpackFunction } from "./narrowFloats";
import { collapse, type ElementFunction } from "./operators/elementwiseKernel";
import { type BufferValue, innerOffset, type Producer, type ScalarReference, type Uniform } from "./operators/table";
import { contiguousStrides, type Shape } from "./shape";

/**
 * What one kernel computes for each index of tensors that lie alike: a chain of elementwise functions, perhaps behind a
 * producer, whose results they take as they come (a matmul with bias and activation, say). Any of them may be stored.
 */
export interface Group<Target> {
  /** The number of elements of each member. */
  readonly count: number;
  /** In an order in which they can be computed; a producer is the first. */
  readonly members: Member<Target>[];
}

export interface Member<Target> {
  readonly compute: Compute<Target>;
  /** The type that its values are rounded to, and stored in. */
  readonly dtype: DType;
  /** Where its elements go if they are needed. */
  readonly target: Target;
}

export type Compute<Target> =
  | { readonly kind: "producer"; readonly producer: Producer; readonly prologue: Prologue<Target> | null }
  | {
      readonly kind: "call";
      readonly f: ElementFunction;
      readonly operands: readonly Operand<Target>[];
      readonly scalars: readonly ScalarReference[];
    };

/** The chain that computes a producer's first input, in place of a buffer. */
export interface Prologue<Target> {
  readonly members: readonly Member<Target>[];
  readonly result: Member<Target>;
}

export type Operand<Target> =
  | { readonly kind: "member"; readonly member: Member<Target> }
  | { readonly kind: "load"; readonly value: BufferValue; readonly steps: Steps }
  /** The element so far of what an update in place stores to. */
  | { readonly kind: "stored"; readonly dtype: DType }
  | { readonly kind: "constant"; readonly scalar: ScalarReference; readonly dtype: ComputeType };

/** How a load walks with the index: sizes and strides, innermost first; a stride is 0 where the operand is broadcast. */
export interface Steps {
  readonly sizes: readonly number[];
  readonly strides: readonly number[];
}

/** What a kernel may bind and take at most: WebGPU's guaranteed 8 storage buffers, 64 uniform words. */
export const mostBindings = 8;
const mostWords = 60;
/** Longer chains compile slowly and hold many values. */
const mostMembers = 24;

/** The steps of an operand, given its strides in a shape whose elements the index counts in row-major order. */
export function stepsOf(shape: Shape, strides: readonly number[]): Steps {
  const view = collapse(shape, [contiguousStrides(shape), strides]);
  return { sizes: view.shape, strides: view.strides[1]! };
}

export const isLinear = ({ strides }: Steps): boolean =>
  strides.length === 0 || (strides.length === 1 && strides[0] === 1);

/** The members of a group that others need, and the calls and loads behind them, as a kernel. */
export interface FusedKernel {
  readonly shader: Shader;
  readonly bindings: readonly BufferValue[];
  readonly uniforms: readonly Uniform[];
  readonly grid: Grid;
  readonly work: number;
}

/** A member and where it is stored. */
export interface Stored<Target> {
  readonly member: Member<Target>;
  readonly value: BufferValue;
  /** Whether it is what an update changes in place. */
  readonly isUpdated: boolean;
  /** Whether the elements behind the last, up to a multiple of 4, must stay as they are. */
  readonly keepsPadding: boolean;
}

interface Binding {
  readonly name: string;
  readonly type: string;
  readonly value: BufferValue;
  readonly access: Access;
}

interface Load {
  readonly value: BufferValue;
  readonly steps: Steps;
  readonly name: string;
  /** The function from the index to its place, if it takes one. */
  readonly at: string | null;
  /** The variable that holds its place at the index, if others may use it. */
  readonly place: string | null;
}

/** Whether a group with these members fits a kernel, were `stored` of them stored. */
export function fits<Target>(members: readonly Member<Target>[], stored: number): boolean {
  if (members.length > mostMembers) return false;
  const writer = new Writer();
  writer.chain(members, "one", "l");
  return writer.bindings.length + stored <= mostBindings && writer.words.length <= mostWords;
}

const quads = 64;

/**
 * Whether a kernel behind a producer, which has one element at a time, can store it: two packed ones share a word, which
 * one invocation must write.
 * @param hasHalves whether the device has `shader-f16`.
 */
export const storesSingly = (dtype: DType, hasHalves: boolean): boolean =>
  !isNarrow(dtype) || (dtype === "float16" && hasHalves);

/**
 * The kernel that computes the members and stores some of them, by vectors of 4 but behind a producer that has no quads,
 * where what is stored must be stored singly.
 */
export function fusedKernel<Target>({ count, members }: Group<Target>, stored: readonly Stored<Target>[]): FusedKernel {
  const writer = new Writer();
  const producer = members[0]!.compute.kind === "producer" ? members[0]!.compute.producer : null;
  const quadCode = producer?.quadCode ?? null;
  const lanes = producer && !quadCode ? "one" : "quad";
  const body = writer.chain(members, lanes, "l");
  const stores = stored.map(({ member, value, isUpdated, keepsPadding }, i) => {
    const name = isUpdated ? "updated" : `out${i}`;
    const stored = value.root.dtype;
    const type = isNarrow(stored) ? "f16" : wgslType[stored];
    const quad = isNarrow(stored) ? "vec2u" : `vec4<${type}>`;
    writer.bind(name, lanes === "one" ? type : quad, value, "write");
    return writer.store(member, name, stored, lanes === "one", keepsPadding && count % 4 !== 0);
  });
  const names = members.map(({ compute }) => (compute.kind === "producer" ? compute.producer.name : compute.f.name));
  const shared = { bindings: writer.bindings.map(({ value }) => value), uniforms: writer.words };
  const work = count * (members.length + writer.bindings.length);
  if (producer) {
    const type = wgslType[computeType(members[0]!.dtype)];
    const code = `${writer.declarations()}
fn ${lanes === "one" ? "store" : "store_quad"}(i: u32, x: ${lanes === "one" ? type : `vec4<${type}>`}) {
${lanes === "one" ? "" : "  let quad = i >> 2u;\n"}${[...body, ...stores].join("\n")}
}
${quadCode ?? producer.code}`;
    const shader = { name: names.join(" + "), code, bindings: writer.bindings.map(({ access }) => access) };
    return { ...shared, shader, grid: producer.grid, work: producer.work + work };
  }
  writer.word("count", "u32", count);
  const code = `${writer.declarations()}
@compute @workgroup_size(${quads})
fn main(@builtin(global_invocation_id) id: vec3u, @builtin(num_workgroups) n: vec3u) {
  let quad = id.x + (id.y + id.z * n.y) * n.x * ${quads}u;
  let i = quad * 4u;
  if (i >= u.count) { return; }
${[...body, ...stores].join("\n")}
}`;
  const shader = { name: names.join(" + "), code, bindings: writer.bindings.map(({ access }) => access) };
  return { ...shared, shader, grid: spread(Math.ceil(count / (4 * quads))), work };
}

/** Writes the parts of a kernel: what it binds, its uniforms, its functions. */
class Writer {
  readonly bindings: Binding[] = [];
  readonly words: Uniform[] = [];
  private usesHalves = false;
  private readonly fields: string[] = [];
  private readonly functions = new Set<string>();
  private readonly calls: { readonly f: ElementFunction; readonly types: string; readonly name: string }[] = [];
  private readonly loads: Load[] = [];
  private readonly names = new Map<unknown, string>();

  word(name: string, type: string, value: Uniform): string {
    this.fields.push(`  ${name}: ${type},`);
    this.words.push(value);
    return `u.${name}`;
  }

  bind(name: string, type: string, value: BufferValue, access: Access): void {
    if (type === "f16") this.usesHalves = true;
    this.bindings.push({ name, type, value, access });
  }

  declarations(): string {
    const storage = this.bindings.map(
      ({ name, type, access }, i) =>
        `@group(0) @binding(${i + 1}) var<storage, ${access === "read" ? "read" : "read_write"}> ${name}: array<${type}>;`,
    );
    return `${this.usesHalves ? enableHalves : ""}struct Uniforms {
${this.fields.join("\n")}
}
@group(0) @binding(0) var<uniform> u: Uniforms;
${storage.join("\n")}
${[...this.functions].join("\n")}`;
  }

  /** Statements that compute members at the index `i`: one element, or the four from `i` on. */
  chain<Target>(members: readonly Member<Target>[], lanes: "one" | "quad", prefix: string): string[] {
    const lines: string[] = [];
    for (const [k, member] of members.entries()) {
      const { compute, dtype } = member;
      if (compute.kind === "producer") {
        this.producer(compute.producer, compute.prologue);
        this.names.set(member, "x");
        continue;
      }
      const operands = compute.operands.map((operand) => this.operand(operand, lanes, prefix, lines));
      for (const scalar of compute.scalars)
        operands.push({
          text: this.word(`c${this.words.length}`, "f32", { scalar, dtype: "float32" }),
          isScalar: true,
        });
      const types = compute.operands.map(typeOf);
      const type = computeType(dtype);
      const name = this.call(compute.f, types, type);
      const apply = (lane: string) =>
        `${name}(${operands.map(({ text, isScalar }) => (isScalar ? text : text + lane)).join(", ")})`;
      const variable = `${prefix}m${k}`;
      this.names.set(member, variable);
      const value =
        lanes === "one" ? apply("") : `vec4<${wgslType[type]}>(${[".x", ".y", ".z", ".w"].map(apply).join(", ")})`;
      lines.push(`  let ${variable} = ${isNarrow(dtype) ? this.rounded(value, dtype, lanes) : value};`);
    }
    return lines;
  }

  /** What chains go on with is what would be loaded, had it been stored. */
  private rounded(value: string, type: NarrowType, lanes: "one" | "quad"): string {
    this.functions.add(roundFunction(type));
    return lanes === "quad" ? `round_${type}(${value})` : `round_${type}(vec4f(${value})).x`;
  }

  private operand<Target>(
    operand: Operand<Target>,
    lanes: "one" | "quad",
    prefix: string,
    lines: string[],
  ): { text: string; isScalar: boolean } {
    switch (operand.kind) {
      case "member":
        return { text: this.names.get(operand.member)!, isScalar: false };
      case "stored": {
        if (lanes === "one") return { text: "updated[i]", isScalar: false };
        if (!isNarrow(operand.dtype)) return { text: "updated[quad]", isScalar: false };
        const unpack = `unpack_${operand.dtype}`;
        this.functions.add(unpackFunction(operand.dtype));
        lines.push(`  let before = vec4f(${unpack}(updated[quad].x), ${unpack}(updated[quad].y));`);
        return { text: "before", isScalar: false };
      }
      case "constant": {
        const { scalar, dtype } = operand;
        return { text: this.word(`c${this.words.length}`, wgslType[dtype], { scalar, dtype }), isScalar: true };
      }
      case "load":
        return { text: this.load(operand.value, operand.steps, lanes, prefix, lines), isScalar: false };
    }
  }

  store<Target>(member: Member<Target>, name: string, dtype: DType, isOne: boolean, keepsPadding: boolean): string {
    const value = this.names.get(member)!;
    if (isNarrow(dtype)) {
      if (isOne) return `  ${name}[i] = f16(${value});`;
      this.functions.add(packFunction(dtype));
      return `  ${name}[quad] = pack_${dtype}(${value});`;
    }
    if (isOne) return `  ${name}[i] = ${value};`;
    if (!keepsPadding) return `  ${name}[quad] = ${value};`;
    return `  if (i + 4u <= u.count) { ${name}[quad] = ${value}; } else {
    for (var lane = 0u; lane < u.count - i; lane++) { ${name}[quad][lane] = ${value}[lane]; }
  }`;
  }

  private producer<Target>(producer: Producer, prologue: Prologue<Target> | null): void {
    this.fields.push(producer.fields);
    this.helpers(producer.helpers);
    this.words.push(...producer.uniforms);
    for (const [i, { name, type, value }] of producer.inputs.entries()) {
      const { loadsFirst } = producer;
      if (i === 0 && prologue && loadsFirst) {
        const lines = this.chain(prologue.members, loadsFirst, "p");
        const head = loadsFirst === "one" ? "(i: u32)" : "(quad: u32)";
        this.functions.add(`fn load_${name}${head} -> ${type} {
${loadsFirst === "quad" ? "  let i = quad * 4u;\n" : ""}${lines.join("\n")}
  return ${this.names.get(prologue.result)!};
}`);
        continue;
      }
      this.bind(name, type, value, "read");
      if (loadsFirst && i === 0) this.functions.add(`fn load_${name}(i: u32) -> ${type} { return ${name}[i]; }`);
    }
  }

  /** Functions that several operations share are declared once. */
  private helpers(code = ""): void {
    // A comment would make the function before it look like another one.
    const bare = code.replace(/^[ \t]*\/\/.*\n/gm, "");
    for (const helper of bare.split(/^(?=(?:fn|const|var<private>) )/m))
      if (helper.trim()) this.functions.add(helper.trim());
  }

  /** The name of a function of an operation, on operands of these types. */
  private call(f: ElementFunction, types: readonly ComputeType[], result: ComputeType): string {
    const list = [...types, result].join();
    const known = this.calls.find((call) => call.f === f && call.types === list);
    if (known) return known.name;
    const name = `f${this.calls.length}`;
    this.calls.push({ f, types: list, name });
    this.helpers(f.helpers);
    const letters = ["a", "b", "c", "d"];
    const parameters = [
      ...types.map((type, i) => `${f.updates ? ["o", ...letters][i] : letters[i]}: ${wgslType[type]}`),
      ...Array.from({ length: f.scalars ?? 0 }, (_, i) => `s${i}: f32`),
    ];
    this.functions.add(`fn ${name}(${parameters.join(", ")}) -> ${wgslType[result]} { ${f.body} }`);
    return name;
  }

  /** Loads an operand into a variable, once. */
  private load(value: BufferValue, steps: Steps, lanes: "one" | "quad", prefix: string, lines: string[]): string {
    const alike = this.loads.filter(
      (load) =>
        load.name.startsWith(prefix) &&
        sameNumbers(load.steps.sizes, steps.sizes) &&
        sameNumbers(load.steps.strides, steps.strides),
    );
    const known = alike.find((load) => load.value.root === value.root && load.value.offset === value.offset);
    if (known) return known.name;
    const name = `${prefix}${this.loads.length}`;
    const scalar = wgslType[value.dtype];
    const { sizes, strides } = steps;
    const offset = innerOffset(value);
    const base = offset === 0 ? "" : this.word(`${name}_offset`, "u32", offset);
    const isConstant = strides.every((stride) => stride === 0);
    const inVectors =
      lanes === "quad" &&
      sizes.length > 0 &&
      offset % 4 === 0 &&
      (isLinear(steps) ||
        (sizes[0]! % 4 === 0 && strides.every((stride, d) => (d === 0 ? stride === 1 : stride % 4 === 0))));
    this.bind(`in_${name}`, inVectors ? `vec4<${scalar}>` : scalar, value, "read");
    // An index takes divisions, so operands that walk alike share it.
    const shared = base ? undefined : alike.find((load) => load.place !== null);
    const at = isConstant || isLinear(steps) ? null : (shared?.at ?? this.indexFunction(name, steps, base));
    const isGathered = at !== null && lanes === "quad" && !inVectors && !(sizes[0]! % 4 === 0 && strides[0] === 0);
    const place = at && !isGathered ? (shared?.place ?? `${name}_at`) : null;
    if (place && place !== shared?.place) lines.push(`  let ${place} = ${at}(i);`);
    this.loads.push({ value, steps, name, at, place: base ? null : place });
    const indexOf = (i: string) => (isConstant ? base || "0u" : (place ?? (base ? `${i} + ${base}` : i)));
    const element = (i: string) => `in_${name}[${indexOf(i)}]`;
    const whole = base ? `(i + ${base}) >> 2u` : "quad";
    let text: string;
    if (lanes === "one") text = element("i");
    else if (inVectors) text = `in_${name}[${place ? `${place} >> 2u` : whole}]`;
    else if (isConstant || (sizes[0]! % 4 === 0 && strides[0] === 0)) text = `vec4<${scalar}>(${element("i")})`;
    else if (isGathered) text = `${this.gatherFunction(name, at, scalar, steps)}(i)`;
    else text = `vec4<${scalar}>(${fourFrom("i").map(element).join(", ")})`;
    lines.push(`  let ${name} = ${text};`);
    return name;
  }

  /** A function that loads four elements, which mostly lie in one row: then their places follow from the first's. */
  private gatherFunction(name: string, at: string, type: string, { sizes, strides }: Steps): string {
    const stride = strides[0] === 1 ? "1u" : `u.${name}_s0`;
    const inRow = ["first", `first + ${stride}`, `first + 2u * ${stride}`, `first + 3u * ${stride}`];
    const list = (places: readonly string[]) => places.map((place) => `in_${name}[${place}]`).join(", ");
    const apart = `return vec4<${type}>(${list(fourFrom("i").map((i) => `${at}(${i})`))});`;
    const row =
      sizes.length > 1 && strides[0] !== 0
        ? `if (i % u.${name}_n0 + 3u < u.${name}_n0) { let first = ${at}(i); return vec4<${type}>(${list(inRow)}); }\n  `
        : "";
    this.functions.add(`fn gather_${name}(i: u32) -> vec4<${type}> {\n  ${row}${apart}\n}`);
    return `gather_${name}`;
  }

  /** A function from the index to the place of a load. */
  private indexFunction(name: string, { sizes, strides }: Steps, base: string): string {
    const lines = [`var at = ${base || "0u"};`, "var rest = i;"];
    for (const [d, size] of sizes.entries()) {
      const isLast = d === sizes.length - 1;
      const length = isLast ? "" : this.word(`${name}_n${d}`, "u32", size);
      const stride = strides[d]!;
      if (stride !== 0) {
        const factor = stride === 1 ? "" : ` * ${this.word(`${name}_s${d}`, "u32", stride)}`;
        lines.push(`at += ${isLast ? "rest" : `(rest % ${length})`}${factor};`);
      }
      if (!isLast) lines.push(`rest /= ${length};`);
    }
    lines.push("return at;");
    this.functions.add(`fn at_${name}(i: u32) -> u32 {\n  ${lines.join("\n  ")}\n}`);
    return `at_${name}`;
  }
}

const fourFrom = (i: string): string[] => [i, `${i} + 1u`, `${i} + 2u`, `${i} + 3u`];

function typeOf<Target>(operand: Operand<Target>): ComputeType {
  switch (operand.kind) {
    case "member":
      return computeType(operand.member.dtype);
    case "load":
      return operand.value.dtype;
    case "constant":
      return operand.dtype;
    case "stored":
      return computeType(operand.dtype);
  }
}

const sameNumbers = (a: readonly number[], b: readonly number[]): boolean =>
  a.length === b.length && a.every((value, i) => value === b[i]);
