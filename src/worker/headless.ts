import { proxy } from "comlink";
import type { JobAuditLine, JobResult } from "../job/result";
import type { JobSnapshot } from "../job/snapshot";
import type { JobSpec } from "../job/spec";
import type { JobAddress } from "./api";
import { startWorker } from "./start";

/** Where a headless member stands, as the command line polls it. */
export interface HeadlessProgress {
  readonly phase: JobSnapshot["phase"];
  readonly step: number;
  readonly steps: number;
  readonly loss: number | null;
  readonly samplesPerSecond: number;
  readonly members: number;
  readonly notices: readonly string[];
}

/** What the command line calls in a headless tab; the same worker that the dashboard has. */
export interface HeadlessTab {
  create(spec: JobSpec, name: string, waitFor: number): Promise<JobAddress>;
  join(address: JobAddress, name: string): Promise<void>;
  leave(): Promise<void>;
  progress(): HeadlessProgress | null;
  result(): Promise<JobResult>;
  audit(): Promise<readonly JobAuditLine[]>;
}

declare global {
  var ringletTab: HeadlessTab;
}

const { worker } = startWorker({
  iceServers: [],
  onFailure: (sentence) => {
    throw new Error(sentence);
  },
});
let latest: JobSnapshot | null = null;
let loss: number | null = null;
const notices: string[] = [];

const follow = (): Promise<void> =>
  worker.subscribe(
    proxy((snapshot: JobSnapshot) => {
      latest = snapshot;
      loss = snapshot.losses.at(-1) ?? loss;
      notices.splice(0, notices.length, ...snapshot.notices.map((notice) => notice.text));
    }),
  );

globalThis.ringletTab = {
  async create(spec, name, waitFor) {
    const address = await worker.create(spec, name, { waitFor });
    await follow();
    return address;
  },
  async join(address, name) {
    await worker.open(address, name);
    await follow();
    await worker.join();
  },
  leave: () => worker.leave(),
  progress: () =>
    latest && {
      phase: latest.phase,
      step: latest.step,
      steps: latest.spec.steps,
      loss,
      samplesPerSecond: latest.samplesPerSecond,
      members: latest.members.filter((member) => member.rank !== null).length,
      notices,
    },
  result: () => worker.result(),
  audit: () => worker.audit(),
};
