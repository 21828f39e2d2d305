import { BrowserConnector } from "../browserConnector";
import { createIdentity } from "../identity";
import type { MemberId } from "../link";
import { memberId } from "../memberId";
import { LinkError } from "../proveLink";
import { signalingAt } from "../rendezvous";
import { WebRtcNetwork } from "../webRtcNetwork";

let current: WebRtcNetwork | null = null;
const refusals: string[] = [];
const goodbyes: string[] = [];

function network(): WebRtcNetwork {
  if (current === null) throw new Error("This tab hasn't started.");
  return current;
}

/** Opens this tab's network at the page's own server. @returns this member's id. */
export async function start(job: string, secretByte: number, isMaker: boolean): Promise<MemberId> {
  const info: { signalingPath: string; iceServers: RTCIceServer[] } = await (await fetch("/ringlet.json")).json();
  const made = await WebRtcNetwork.create({
    connector: new BrowserConnector({
      signaling: signalingAt(info.signalingPath, location),
      iceServers: info.iceServers,
      forWorker: false,
    }),
    identity: await createIdentity(),
    secret: new Uint8Array(16).fill(secretByte),
    job,
    manifestHash: isMaker ? new Uint8Array(32).fill(1) : null,
  });
  made.onRefused = (sentence) => refusals.push(sentence);
  // Everyone sends back what comes, with the next step.
  made.onLink = (link) => {
    link.onClose = (reason) => goodbyes.push(reason);
    link.onFrame = ({ payload, ...header }) => link.send({ ...header, step: header.step + 1 }, payload);
  };
  current = made;
  return made.self;
}

export const claim = (): Promise<void> => network().claim();

/** @returns the member found, or why none was. */
export async function contact(): Promise<string> {
  try {
    return (await network().contact()).peer;
  } catch (error) {
    return error instanceof LinkError ? `${error.code}: ${error.message}` : String(error);
  }
}

export const dial = async (peer: string, via: string): Promise<MemberId> =>
  (await network().dial(memberId(peer), memberId(via))).peer;

export const peers = (): MemberId[] => [...network().links.keys()];
export const told = (): { refusals: string[]; goodbyes: string[] } => ({ refusals, goodbyes });

/** Sends bytes to a peer and waits until they come back. */
export async function echo(peer: string, bytes: number): Promise<number> {
  const link = network().links.get(memberId(peer));
  if (link === undefined) throw new Error(`There is no link to ${peer}.`);
  const sent = Uint8Array.from({ length: bytes }, (_, index) => index * 31);
  return new Promise((resolve) => {
    link.onFrame = ({ step, payload }) => {
      if (step === 8) resolve(payload.filter((byte, index) => byte === sent[index]).length);
    };
    link.send({ kind: "control", epoch: 0, step: 7, channel: 0, offset: 0 }, sent);
  });
}
