import { batch } from "@preact/signals";
import * as Comlink from "comlink";
import { messageOf } from "../base/messageOf";
import type { JobSnapshot } from "../job/snapshot";
import type { JobSpec } from "../job/spec";
import type { JobAddress, RingletWorker } from "../worker/api";
import { type StartedWorker, startWorker } from "../worker/start";
import { addressSuffix, parseAddress } from "./address";
import { saveFile } from "./download";
import { metricsFileName, weightsFileName } from "./fileNames";
import { oncePerFrame } from "./frames";
import { parseIceServers } from "./iceServers";
import { refreshPredictions } from "./predictions";
import { loadIceServers, loadMachineName, rememberTraining, wasTraining } from "./preferences";
import {
  type Action,
  busy,
  failure,
  gpu,
  isOver,
  losses,
  lossVersion,
  phase,
  ring,
  snapshot,
  takesPart,
  view,
} from "./state";

let started: StartedWorker | null = null;
let workerIceServers = "";

const brokenLink = "Ask whoever sent it for the whole link, or start a job of your own.";
const closedJob = "Try again if the job should be running, ask for a new link, or start a job of your own.";

/** The tab's worker, made anew when the ICE servers changed before it had a job. */
function connect(): Comlink.Remote<RingletWorker> {
  const iceServers = loadIceServers();
  if (started === null || iceServers !== workerIceServers) {
    started?.terminate();
    started = startWorker({
      iceServers: parseIceServers(iceServers),
      onFailure: (problem) => {
        failure.value = problem;
      },
    });
    workerIceServers = iceServers;
  }
  return started.worker;
}

/** Shows what the address bar asks for. */
export async function begin(): Promise<void> {
  const address = parseAddress(window.location);
  switch (address.kind) {
    case "start":
      await look();
      return;
    case "broken":
      view.value = { kind: "message", title: "This link is incomplete", text: address.problem, advice: brokenLink };
      return;
    case "job":
      await openJob(address.address);
      return;
  }
}

async function look(): Promise<void> {
  try {
    gpu.value = await connect().gpu();
  } catch (error) {
    failure.value = messageOf(error);
  }
}

async function openJob(address: JobAddress): Promise<void> {
  view.value = { kind: "opening", address };
  try {
    const opened = connect();
    const [status] = await Promise.all([
      opened.gpu(),
      opened.subscribe(Comlink.proxy(receive)),
      opened.open(address, loadMachineName()),
    ]);
    gpu.value = status;
  } catch (error) {
    view.value = { kind: "message", title: "This job can't be opened", text: messageOf(error), advice: closedJob };
    return;
  }
  view.value = { kind: "job", address };
  if (wasTraining(address.job) && gpu.value.kind === "available" && !isOver(phase.value.kind)) await join();
}

/** Makes a job, trains it here, and puts its link into the address bar, so that a reload comes back to it. */
export function start(spec: JobSpec): Promise<void> {
  return act("start", async () => {
    const maker = connect();
    const [address] = await Promise.all([
      maker.create(spec, loadMachineName()),
      maker.subscribe(Comlink.proxy(receive)),
    ]);
    rememberTraining(address.job);
    window.history.replaceState(null, "", addressSuffix(address));
    view.value = { kind: "job", address };
  });
}

export const join = (): Promise<void> => act("join", () => connect().join());
export const leave = (): Promise<void> => act("leave", () => connect().leave());
export const pause = (): Promise<void> => act("pause", () => connect().pause());
export const resume = (): Promise<void> => act("resume", () => connect().resume());
export const stop = (): Promise<void> => act("stop", () => connect().stop());

export function downloadWeights(): Promise<void> {
  return act("weights", async () => {
    const bytes = await connect().weights();
    const now = snapshot.peek();
    if (now !== null) saveFile(weightsFileName(now.spec, now.job, now.step), "application/octet-stream", bytes);
  });
}

export function downloadMetrics(): Promise<void> {
  return act("metrics", async () => {
    const csv = await connect().metricsCsv();
    const now = snapshot.peek();
    if (now !== null) saveFile(metricsFileName(now.spec, now.job, now.step), "text/csv", csv);
  });
}

async function act(action: Action, run: () => Promise<void>): Promise<void> {
  batch(() => {
    busy.value = action;
    failure.value = null;
  });
  try {
    await run();
  } catch (error) {
    failure.value = messageOf(error);
  } finally {
    busy.value = null;
  }
}

let latest: JobSnapshot | null = null;
let publish: (() => void) | null = null;

/** Takes a snapshot's losses at once, since they are told only once, and draws at the next frame. */
function receive(next: JobSnapshot): void {
  losses.add(next.lossesFrom, next.losses);
  latest = next;
  // A reload in the middle of a frame must know whether to come back in.
  if (next.phase.kind === "training") rememberTraining(next.job);
  if (next.phase.kind === "left" || isOver(next.phase.kind)) rememberTraining(null);
  publish ??= oncePerFrame(draw);
  publish();
}

function draw(): void {
  const next = latest;
  if (next === null) return;
  batch(() => {
    snapshot.value = next;
    lossVersion.value = losses.length;
  });
  if (started !== null) refreshPredictions(started.worker, next);
}

/** Asks before the last member goes, since the job goes with it. */
export function warnLoneMember(event: BeforeUnloadEvent): void {
  const members = ring.peek();
  if (takesPart(phase.peek().kind) && members.length === 1 && members[0]?.self === true) event.preventDefault();
}

/** Shows what nobody caught. */
export function reportUncaught(error: unknown): void {
  failure.value = `Something unforeseen went wrong: ${messageOf(error)}`;
}
