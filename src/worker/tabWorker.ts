import { fromBase64Url, toBase64Url, toHex } from "../base/bytes";
import { messageOf } from "../base/messageOf";
import { loadMnist } from "../data/mnist";
import { writeSafetensors } from "../data/safetensors";
import { type Device, requestDevice } from "../gpu";
import { EngineReplica, layoutLengthOf } from "../job/engineReplica";
import { JobMember, type OnProgress } from "../job/jobMember";
import { manifestHash } from "../job/manifest";
import type { Prediction } from "../job/replica";
import type { JobAuditLine, JobResult } from "../job/result";
import type { GpuDescription, JobSnapshot } from "../job/snapshot";
import { type JobSpec, type Manifest, parseJobSpec } from "../job/spec";
import type { Connector } from "../transport/connector";
import { createIdentity, secretBytes } from "../transport/identity";
import { WebRtcNetwork } from "../transport/webRtcNetwork";
import type { GpuStatus, JobAddress, RingletWorker } from "./api";

/** How often a page gets snapshots while nothing but numbers changes, in milliseconds. */
const snapshotEvery = 250;
/** Validation digits whose guesses a page shows. */
const shownDigits = Array.from({ length: 12 }, (_, i) => i);

type OpenDevice = { readonly device: Device; readonly gpu: GpuDescription };

/** The worker behind a page: one GPU, one network, one job at a time. */
export class TabWorker implements RingletWorker {
  readonly #connector: Connector;
  #device: Promise<OpenDevice> | null = null;
  #network: WebRtcNetwork | null = null;
  #member: JobMember | null = null;
  #replica: EngineReplica | null = null;
  readonly #subscribers = new Map<(snapshot: JobSnapshot) => void, number>();
  #timer: ReturnType<typeof setInterval> | null = null;
  #lastPhase = "";

  constructor(connector: Connector) {
    this.#connector = connector;
  }

  async gpu(): Promise<GpuStatus> {
    try {
      return { kind: "available", gpu: (await this.#openDevice()).gpu };
    } catch (error) {
      return { kind: "unavailable", message: messageOf(error) };
    }
  }

  async create(
    spec: JobSpec,
    name: string,
    { waitFor }: { readonly waitFor: number } = { waitFor: 1 },
  ): Promise<JobAddress> {
    this.#mustBeFree();
    const checked = parseJobSpec(spec);
    const { gpu } = await this.#openDevice();
    const secret = crypto.getRandomValues(new Uint8Array(secretBytes));
    const job = toHex(crypto.getRandomValues(new Uint8Array(8)));
    const manifest: Manifest = {
      protocol: 1,
      job,
      maker: name,
      spec: checked,
      elements: layoutLengthOf(checked.model),
    };
    const network = await this.#openNetwork(job, secret, await manifestHash(manifest));
    const member = JobMember.create({ network, manifest, name, gpu, waitFor, makeReplica: this.#makeReplica });
    this.#follow(member);
    await this.#claim(network);
    return { job, secret: toBase64Url(secret) };
  }

  async open(address: JobAddress, name: string): Promise<void> {
    this.#mustBeFree();
    const secret = secretFrom(address.secret);
    const network = await this.#openNetwork(address.job, secret, null);
    try {
      const firstLink = await network.contact();
      const proven = network.manifestHash;
      if (proven === null) throw new Error("The first contact proved no job.");
      const status = await this.gpu();
      const gpu = status.kind === "available" ? status.gpu : { vendor: "", architecture: "", description: "no WebGPU" };
      const makeReplica = this.#makeReplica;
      this.#follow(await JobMember.watch({ network, firstLink, manifestHash: proven, name, gpu, makeReplica }));
    } catch (error) {
      network.close("This tab couldn't open the job.");
      this.#network = null;
      throw error;
    }
  }

  async join(): Promise<void> {
    const member = this.#mustHaveJob();
    await this.#openDevice();
    await member.join();
    if (this.#network) await this.#claim(this.#network);
  }

  leave = (): Promise<void> => this.#mustHaveJob().leave();
  pause = (): Promise<void> => this.#mustHaveJob().pause();
  resume = (): Promise<void> => this.#mustHaveJob().resume();
  stop = (): Promise<void> => this.#mustHaveJob().stop();

  async subscribe(callback: (snapshot: JobSnapshot) => void): Promise<void> {
    this.#subscribers.set(callback, 0);
    this.#publish();
  }

  predictions(): Promise<readonly Prediction[]> {
    return this.#mustHaveJob().predictions(shownDigits);
  }

  async weights(): Promise<Uint8Array<ArrayBuffer>> {
    const member = this.#mustHaveJob();
    const { weights } = await member.state();
    const entries = this.#replica?.layout.entries ?? [];
    return writeSafetensors(
      entries.map(({ name, shape, offset, length }) => [
        name,
        { dtype: "F32", shape, data: weights.slice(offset, offset + length) },
      ]),
      { format: "pt", ringlet: JSON.stringify(member.manifest.spec) },
    );
  }

  async metricsCsv(): Promise<string> {
    return this.#mustHaveJob().metricsCsv();
  }

  result(): Promise<JobResult> {
    return this.#mustHaveJob().result();
  }

  async audit(): Promise<readonly JobAuditLine[]> {
    return this.#mustHaveJob().audit();
  }

  #openDevice(): Promise<OpenDevice> {
    this.#device ??= requestDevice().then((device) => {
      // A lost device is gone for good; whoever asks next gets a new one.
      void device.lost.then(() => {
        this.#device = null;
      });
      const { vendor, architecture, description } = device.info;
      return { device, gpu: { vendor, architecture, description } };
    });
    this.#device.catch(() => {
      this.#device = null;
    });
    return this.#device;
  }

  async #openNetwork(
    job: string,
    secret: Uint8Array<ArrayBuffer>,
    hash: Uint8Array<ArrayBuffer> | null,
  ): Promise<WebRtcNetwork> {
    const identity = await createIdentity();
    this.#network = await WebRtcNetwork.create({
      connector: this.#connector,
      identity,
      secret,
      job,
      manifestHash: hash,
    });
    return this.#network;
  }

  /** Lets the link lead here. A server that is gone is no reason to stop training: those that are in know each other. */
  async #claim(network: WebRtcNetwork): Promise<void> {
    try {
      await network.claim();
    } catch (error) {
      const why = messageOf(error);
      network.onRefused?.(`Nobody new can join through this tab for now: ${why}`);
    }
  }

  readonly #makeReplica = async (manifest: Manifest, onProgress: OnProgress): Promise<EngineReplica> => {
    const { device } = await this.#openDevice();
    const data = await loadMnist({
      baseUrl: new URL("/", self.location.href).href,
      onProgress: (loaded, total) => onProgress("MNIST", loaded, total),
    });
    this.#replica = new EngineReplica(device, manifest.spec, data);
    return this.#replica;
  };

  #follow(member: JobMember): void {
    this.#member = member;
    member.onChange = () => {
      // Numbers change all the time; what a person must see at once is the phase and who is there.
      const { phase, members } = member.snapshot(Number.MAX_SAFE_INTEGER);
      const mark = `${phase.kind} ${members.map(({ id, rank, state }) => `${id} ${rank} ${state}`).join()}`;
      if (mark === this.#lastPhase) return;
      this.#lastPhase = mark;
      this.#publish();
    };
    this.#timer ??= setInterval(() => this.#publish(), snapshotEvery);
    this.#publish();
  }

  #publish(): void {
    const member = this.#member;
    if (!member) return;
    for (const [callback, lossesFrom] of this.#subscribers) {
      const snapshot = member.snapshot(lossesFrom);
      this.#subscribers.set(callback, snapshot.lossesFrom + snapshot.losses.length);
      callback(snapshot);
    }
  }

  #mustBeFree(): void {
    if (this.#member) throw new Error("This tab runs a job already; open another tab for another job.");
  }

  #mustHaveJob(): JobMember {
    if (!this.#member) throw new Error("This tab has no job yet; start one or open a job's link.");
    return this.#member;
  }
}

function secretFrom(text: string): Uint8Array<ArrayBuffer> {
  if (text === "")
    throw new Error("The link has no secret: it ends before or right after the #. Ask for the whole link.");
  const secret = fromBase64Url(text);
  if (secret?.length !== secretBytes)
    throw new Error("The link's secret isn't one of Ringlet's: ask for the whole link again.");
  return secret;
}
