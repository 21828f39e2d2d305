// One tab of the all-reduce bench.
import { BareChannel } from "./bareChannel";
import { accept, allOpen, answer, connectionTo, offer, type Purpose } from "./connections";
import type { Turn } from "./results";
import { RingSide } from "./ringSide";

/** What each member sends in a ring all-reduce, and gets: every segment but one, twice. */
const trafficBytes = ({ worldSize, length, rank }: Turn, direction: "sent" | "received"): number => {
  const boundary = (segment: number) => Math.floor((segment * length) / worldSize);
  // On hop h rank r sends segment r - h: all but r + 1 in reduce-scatter, all but r + 2 in all-gather; it gets what r - 1 sends.
  const sender = direction === "sent" ? rank : (rank + worldSize - 1) % worldSize;
  const lengthOf = (segment: number) => boundary((segment % worldSize) + 1) - boundary(segment % worldSize);
  return 4 * (2 * length - lengthOf(sender + 1) - lengthOf(sender + 2));
};

const neighbours = ({ rank, worldSize }: Turn) => ({
  next: (rank + 1) % worldSize,
  previous: (rank + worldSize - 1) % worldSize,
});

const bareChannels = new Map<number, BareChannel>();
function bareChannel(rank: number): BareChannel {
  const channel = bareChannels.get(rank);
  if (!channel) throw new Error(`There is no bare channel to rank ${rank}.`);
  return channel;
}

async function bareTurn(turn: Turn): Promise<number> {
  const { next, previous } = neighbours(turn);
  const [outgoing, incoming] = [bareChannel(next), bareChannel(previous)];
  const [sent, received] = [trafficBytes(turn, "sent"), trafficBytes(turn, "received")];
  await until(turn.startAt);
  const start = performance.now();
  for (let repetition = 0; repetition < turn.repetitions; repetition += 1)
    await Promise.all([outgoing.send(sent), incoming.receive(received)]);
  return performance.now() - start;
}

let ring: RingSide | null = null;

/** Makes both sides of this tab, once its channels are open and before any tab sends. */
function prepare(rank: number, worldSize: number): void {
  for (let other = 0; other < worldSize; other += 1)
    if (other !== rank) bareChannels.set(other, new BareChannel(connectionTo(other, "bare").channel));
  ring = new RingSide(rank, worldSize);
}

let data = new Float32Array(0);
/** Outside of the turn, so that its CPU time isn't counted; likewise checkData. */
function fillData(turn: Turn): void {
  if (data.length !== turn.length) data = new Float32Array(turn.length);
  for (let index = 0; index < data.length; index += 1) data[index] = (index % 7) + turn.rank;
}

async function ringTurn(turn: Turn): Promise<number> {
  if (!ring) throw new Error("The ring was not prepared.");
  await until(turn.startAt);
  const before = ring.sentBytes;
  const start = performance.now();
  for (let repetition = 0; repetition < turn.repetitions; repetition += 1) await ring.allReduce(data);
  const milliseconds = performance.now() - start;
  const [sent, expected] = [ring.sentBytes - before, turn.repetitions * trafficBytes(turn, "sent")];
  if (sent !== expected) throw new Error(`The ring sent ${sent} bytes where the bare channels send ${expected}.`);
  return milliseconds;
}

/**
 * Throws where the result is wrong; returns the FNV-1a of its bits, which all tabs must have the same. The sums are small whole numbers, so that they are exact: after the first all-reduce each one multiplies by the
 * world's size.
 */
function checkData({ worldSize, repetitions }: Turn): number {
  const factor = worldSize ** (repetitions - 1);
  const ranks = (worldSize * (worldSize - 1)) / 2;
  for (let index = 0; index < data.length; index += 1) {
    const expected = (worldSize * (index % 7) + ranks) * factor;
    if (data[index] !== expected)
      throw new Error(`The all-reduce is wrong: element ${index} is ${data[index]}, not ${expected}.`);
  }
  return fnv1a(new Uint8Array(data.buffer));
}

function fnv1a(bytes: Uint8Array): number {
  let hash = 0x811c9dc5;
  for (const byte of bytes) hash = Math.imul(hash ^ byte, 0x01000193);
  return hash >>> 0;
}

/** Waits without giving the thread away at the end: a timer may be late by more than a small all-reduce takes. */
async function until(time: number): Promise<void> {
  const rest = time - Date.now();
  if (rest > 3) await new Promise((resolve) => setTimeout(resolve, rest - 3));
  while (Date.now() < time);
}

declare global {
  interface Window {
    allReduceBench: {
      offer(rank: number, purpose: Purpose): Promise<string>;
      answer(rank: number, purpose: Purpose, sdp: string): Promise<string>;
      accept(rank: number, purpose: Purpose, sdp: string): Promise<void>;
      allOpen(): Promise<void>;
      prepare(rank: number, worldSize: number): void;
      fillData(turn: Turn): void;
      checkData(turn: Turn): number;
      /** Milliseconds from the common start to this tab's end. */
      bareTurn(turn: Turn): Promise<number>;
      ringTurn(turn: Turn): Promise<number>;
    };
  }
}

window.allReduceBench = { offer, answer, accept, allOpen, prepare, fillData, checkData, bareTurn, ringTurn };
