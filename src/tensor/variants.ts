import type { Layout } from "./operators/matmulShader";

/** Something that a variant can be timed on. */
export interface VariantExample {
  readonly kind: "matmul";
  readonly layout: Layout;
  readonly m: number;
  readonly n: number;
  readonly k: number;
  readonly batches: number;
}

/** A use of a kernel that has variants, all of which give the same bits. */
export interface VariantSite {
  /** The kernel and its sizes, rounded so that similar uses share what was measured. */
  readonly key: string;
  /** The variants' names. */
  readonly names: readonly string[];
  /** Which is taken where nothing was measured. */
  readonly usual: string;
  readonly example: VariantExample;
}

/** Which variant of a kernel a device takes: the one that was measured to be the fastest, or else the usual one. */
export class Variants {
  /** What was measured, by a site's key. */
  readonly chosen = new Map<string, string>();
  /** The sites of all plans so far, by key. */
  readonly seen = new Map<string, VariantSite>();
  /** Taken wherever there is one of that name. */
  forced: string | null = null;

  choose(site: VariantSite): string {
    const { key, names, usual } = site;
    if (this.forced !== null) return names.includes(this.forced) ? this.forced : usual;
    this.seen.set(key, site);
    const measured = this.chosen.get(key);
    return measured !== undefined && names.includes(measured) ? measured : usual;
  }
}
