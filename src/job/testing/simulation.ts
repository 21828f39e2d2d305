import { createHash } from "node:crypto";
import { VirtualClock } from "../../base/virtualClock";
import { sgd } from "../../optim/spec";
import { InProcessHub, type InProcessOptions } from "../../transport/inProcess";
import type { MemberId, Network } from "../../transport/link";
import { memberId } from "../../transport/memberId";
import { JobMember, type OnProgress } from "../jobMember";
import { manifestHash } from "../manifest";
import type { JobSpec, Manifest } from "../spec";
import { SoftmaxReplica, softmaxElements } from "./softmaxReplica";

export const simulatedSpec: JobSpec = {
  version: 1,
  recipe: "mnist",
  model: "mlp",
  batch: 64,
  steps: 40,
  seed: 5,
  optimizer: sgd({ learningRate: 0.2, momentum: 0.9 }),
  validateEvery: 10,
};

export interface SimulationOptions extends Pick<InProcessOptions, "seed" | "latency"> {
  readonly spec?: Partial<JobSpec>;
  readonly elements?: number;
  readonly waitFor?: number;
  readonly compute?: (member: number, samples: number) => number;
  readonly spoil?: (member: number, gradients: Float32Array, samples: Uint32Array) => void;
  /** What a member takes for the SHA-256 of some bytes. */
  readonly sha256?: (member: number, hash: string) => string;
  /** Why a member's model can't be made; null where it can. */
  readonly refusal?: (member: number) => string | null;
}

export interface Tab {
  readonly index: number;
  readonly id: MemberId;
  readonly network: Network;
  readonly job: JobMember;
  readonly replica: () => SoftmaxReplica | null;
  alive: boolean;
}

/** Several tabs of one job in virtual time. */
export class Simulation {
  readonly clock = new VirtualClock();
  readonly hub: InProcessHub;
  readonly manifest: Manifest;
  readonly tabs: Tab[] = [];
  readonly options: SimulationOptions;

  constructor(options: SimulationOptions = {}) {
    this.options = options;
    this.hub = new InProcessHub({
      clock: this.clock,
      seed: options.seed ?? 1,
      latency: options.latency ?? [1, 5],
    });
    this.manifest = {
      protocol: 1,
      job: "simulated",
      maker: "tab 0",
      spec: { ...simulatedSpec, ...options.spec },
      elements: options.elements ?? softmaxElements,
    };
  }

  get spec(): JobSpec {
    return this.manifest.spec;
  }

  /** The first member, which begins to train. */
  create(): Tab {
    const { index, id, network, common, replica } = this.#newTab();
    const job = JobMember.create({
      ...common,
      manifest: this.manifest,
      ...(this.options.waitFor === undefined ? {} : { waitFor: this.options.waitFor }),
    });
    return this.#keep({ index, id, network, job, replica, alive: true });
  }

  /** One that opens the link through `first`. */
  async watch(first: Tab): Promise<Tab> {
    const { index, id, network, common, replica } = this.#newTab();
    const firstLink = this.hub.connect(id, first.id);
    const job = await this.wait(
      JobMember.watch({ ...common, firstLink, manifestHash: await manifestHash(this.manifest, common.sha256) }),
    );
    return this.#keep({ index, id, network, job, replica, alive: true });
  }

  async join(first: Tab): Promise<Tab> {
    const tab = await this.watch(first);
    await this.wait(tab.job.join());
    return tab;
  }

  /** A job with so many members that begins when all are in. */
  static async ring(members: number, options: SimulationOptions = {}): Promise<Simulation> {
    const simulation = new Simulation({ ...options, waitFor: members });
    const first = simulation.create();
    for (let index = 1; index < members; index += 1) await simulation.join(first);
    return simulation;
  }

  kill(tab: Tab): void {
    tab.alive = false;
    this.hub.kill(tab.id);
    // A dead tab computes nothing more; closing ends its timers, and nobody hears of it.
    tab.job.close();
  }

  /** Lets so many messages arrive or timers end. */
  async events(count: number): Promise<void> {
    let left = count;
    await this.clock.runUntil(() => left-- <= 0);
  }

  /** A tab that does nothing any more, and whose links stay: a page that hangs. */
  freeze(tab: Tab): void {
    tab.alive = false;
    for (const link of tab.network.links.values()) {
      link.onFrame = () => {};
      Object.assign(link, { send: () => {} });
    }
  }

  get members(): Tab[] {
    return this.tabs.filter((tab) => tab.alive && this.rankOf(tab) !== null);
  }

  rankOf(tab: Tab): number | null {
    return tab.job.snapshot(0).members.find(({ self }) => self)?.rank ?? null;
  }

  /** Lets time pass until the promise settles. */
  async wait<Value>(promise: Promise<Value>, limit = 120_000): Promise<Value> {
    let settled = false;
    const settle = () => {
      settled = true;
    };
    promise.then(settle, settle);
    await this.until(() => settled, "a promise settles", limit);
    return promise;
  }

  /** Lets time pass until something holds; fails when it doesn't within `limit` milliseconds. */
  async until(holds: () => boolean, what: string, limit = 600_000): Promise<void> {
    if (await this.clock.runUntil(holds, this.clock.now() + limit)) return;
    const lines = this.tabs.map((tab) => {
      const { phase, step, notices } = tab.job.snapshot(0);
      const last = notices.slice(-6).map(({ text }) => text);
      return `tab ${tab.index} (${tab.alive ? "alive" : "gone"}): step ${step}, ${JSON.stringify(phase)}, ${JSON.stringify(last)}`;
    });
    throw new Error(`Within ${limit} ms it didn't happen that ${what}.\n${lines.join("\n")}`);
  }

  step(tab: Tab): number {
    return tab.job.snapshot(Number.POSITIVE_INFINITY).step;
  }

  async untilStep(step: number): Promise<void> {
    await this.until(() => this.members.some((tab) => this.step(tab) >= step), `step ${step} is reached`);
  }

  /** Until every tab that is alive and in the ring has finished. */
  async untilFinished(limit?: number): Promise<void> {
    const finished = () =>
      this.members.length > 0 && this.members.every((tab) => tab.job.snapshot(0).phase.kind === "finished");
    await this.until(finished, "all members finish", limit);
  }

  end(): void {
    for (const tab of this.tabs) if (tab.alive) tab.job.close();
  }

  #newTab() {
    const index = this.#count;
    this.#count += 1;
    const id = memberId((index + 1).toString(16).padStart(2, "0").repeat(16));
    const network = this.hub.join(id);
    let replica: SoftmaxReplica | null = null;
    const { elements, compute, spoil, sha256, refusal } = this.options;
    const common = {
      network,
      name: `tab ${index}`,
      gpu: { vendor: "test", architecture: "", description: "" },
      clock: this.clock,
      sha256: async (bytes: Uint8Array) => {
        const hash = createHash("sha256").update(bytes).digest("hex");
        return sha256?.(index, hash) ?? hash;
      },
      makeReplica: async (manifest: Manifest, onProgress: OnProgress) => {
        onProgress("the data", 1, 2);
        const problem = refusal?.(index) ?? null;
        if (problem !== null) throw new Error(problem);
        replica = new SoftmaxReplica({
          spec: manifest.spec,
          clock: this.clock,
          compute: (samples) => compute?.(index, samples) ?? 20,
          ...(elements === undefined ? {} : { elements }),
          ...(spoil === undefined
            ? {}
            : { spoil: (gradients: Float32Array, samples: Uint32Array) => spoil(index, gradients, samples) }),
        });
        return replica;
      },
    };
    return { index, id, network, common, replica: () => replica };
  }
  #count = 0;

  #keep(tab: Tab): Tab {
    this.tabs.push(tab);
    return tab;
  }
}
