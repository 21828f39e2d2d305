import type { AttributeValue, Node } from "./graph";

/**
 * What a plan is made for: a graph without its scalars, and which of its nodes survive. The hash finds a plan, and
 * `equals` makes sure of it, so that recordings whose hashes happen to be equal don't share one.
 */
export class Structure {
  constructor(
    readonly hash: number,
    private readonly nodes: readonly Node[],
    /** Nodes whose values go to memory of their own. */
    private readonly outputs: readonly number[],
    /** Nodes of one element that go to the ring. */
    private readonly scalars: readonly number[],
  ) {}

  equals(other: Structure): boolean {
    if (this === other) return true;
    const { nodes } = this;
    if (
      this.hash !== other.hash ||
      nodes.length !== other.nodes.length ||
      !sameNumbers(this.outputs, other.outputs) ||
      !sameNumbers(this.scalars, other.scalars)
    )
      return false;
    for (let i = 0; i < nodes.length; i++) if (!sameNode(nodes[i]!, other.nodes[i]!)) return false;
    return true;
  }
}

function sameNode(a: Node, b: Node): boolean {
  if (
    a.op !== b.op ||
    a.dtype !== b.dtype ||
    a.scalars.length !== b.scalars.length ||
    !sameNumbers(a.inputs, b.inputs) ||
    !sameNumbers(a.shape, b.shape)
  )
    return false;
  if (a.attributes === b.attributes) return true;
  let count = 0;
  for (const name in a.attributes) {
    if (!sameAttribute(a.attributes[name], b.attributes[name])) return false;
    count += 1;
  }
  for (const _ in b.attributes) count -= 1;
  return count === 0;
}

function sameAttribute(a: AttributeValue | undefined, b: AttributeValue | undefined): boolean {
  if (typeof a !== "object" || typeof b !== "object" || a === null || b === null) return Object.is(a, b);
  return sameNumbers(a, b);
}

function sameNumbers(a: readonly number[], b: readonly number[]): boolean {
  if (a.length !== b.length) return false;
  for (let i = 0; i < a.length; i++) if (!Object.is(a[i], b[i])) return false;
  return true;
}
