import type { Structure } from "./structure";

interface Entry<Plan> {
  readonly structure: Structure;
  readonly plan: Plan;
}

/** Plans by what they are for. Of more than `capacity`, the least recently used is given up. */
export class PlanCache<Plan> {
  /** By hash, least recently used first. Structures of one hash are kept under the numbers that follow it. */
  private readonly entries = new Map<number, Entry<Plan>>();

  /** @param onEvicted is told of each plan that is given up. */
  constructor(
    private readonly capacity: number,
    private readonly onEvicted: (plan: Plan) => void,
  ) {}

  /** Gives up all plans. */
  clear(): void {
    for (const { plan } of this.entries.values()) this.onEvicted(plan);
    this.entries.clear();
  }

  /** The plan of a structure, made at the first use. */
  get(structure: Structure, make: () => Plan): Plan {
    let key = structure.hash;
    let entry = this.entries.get(key);
    while (entry && !entry.structure.equals(structure)) entry = this.entries.get(++key);
    if (entry) this.entries.delete(key);
    else entry = { structure, plan: make() };
    this.entries.set(key, entry);
    if (this.entries.size > this.capacity) {
      const [oldest, { plan }] = this.entries.entries().next().value!;
      this.entries.delete(oldest);
      this.onEvicted(plan);
    }
    return entry.plan;
  }
}
