import type { DType } from "./dtype";
import type { Shape } from "./shape";

/** What shapes a node's kernels: part of the graph's structure, so a change of one makes another plan. */
export type Attributes = { readonly [name: string]: AttributeValue };
export type AttributeValue = number | boolean | string | null | readonly number[];

/**
 * One recorded operation: plain data, so that a graph can be recorded without a device and sent elsewhere.
 * `inputs` are indices of earlier nodes. `scalars` are values that kernels take as uniforms: they may change from one
 * replay to the next.
 */
export interface Node {
  readonly op: string;
  readonly inputs: readonly number[];
  readonly attributes: Attributes;
  readonly scalars: readonly number[];
  readonly shape: Shape;
  readonly dtype: DType;
}

/** A hash of structure, kept up to date as nodes are added. Two 32-bit lanes, joined into 53 bits. */
export class StructureHash {
  private a = 0x811c9dc5;
  private b = 0x9747b28c;

  number(value: number): void {
    // Integers mix as they are; others by their two halves, so that 0.5 and 0.25 differ.
    if ((value | 0) === value) {
      this.mix(value);
      return;
    }
    float[0] = value;
    this.mix(halves[0]!);
    this.mix(halves[1]! ^ 0x5bd1e995);
  }

  string(value: string): void {
    let code = stringCodes.get(value);
    if (code === undefined) {
      code = 0x811c9dc5;
      for (let i = 0; i < value.length; i++) code = Math.imul(code ^ value.charCodeAt(i), 0x01000193);
      stringCodes.set(value, code);
    }
    this.mix(code);
    this.mix(value.length);
  }

  attribute(value: AttributeValue): void {
    if (typeof value === "number") this.number(value);
    else if (typeof value === "string") this.string(value);
    else if (typeof value === "boolean") this.mix(value ? 0x7fffff01 : 0x7fffff02);
    else if (value === null) this.mix(0x7fffff03);
    else this.list(value);
  }

  list(values: readonly number[]): void {
    this.mix(values.length ^ 0x7fff0000);
    for (let i = 0; i < values.length; i++) this.number(values[i]!);
  }

  get value(): number {
    return (this.a >>> 0) * 2 ** 21 + (this.b >>> 11);
  }

  private mix(word: number): void {
    this.a = Math.imul(this.a ^ word, 0x01000193);
    this.a ^= this.a >>> 15;
    this.b = Math.imul((this.b << 13) | (this.b >>> 19), 5) + 0x6b64e654;
    this.b = Math.imul(this.b ^ word, 0xcc9e2d51);
    this.b ^= this.b >>> 16;
  }
}

const float = new Float64Array(1);
const halves = new Int32Array(float.buffer);
const stringCodes = new Map<string, number>();

/** A list of nodes in the order they were recorded, which is also an order in which they can run. */
export class Graph {
  readonly nodes: Node[] = [];
  private readonly running = new StructureHash();

  add(node: Node): number {
    const hash = this.running;
    hash.string(node.op);
    hash.list(node.inputs);
    for (const name in node.attributes) {
      hash.string(name);
      hash.attribute(node.attributes[name]!);
    }
    hash.list(node.shape);
    hash.string(node.dtype);
    return this.nodes.push(node) - 1;
  }

  /** Of its structure. */
  get hash(): number {
    return this.running.value;
  }
}
