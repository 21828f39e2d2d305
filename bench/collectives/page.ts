// One tab of the collectives bench. The pinned comparison of large all-reduces is the other bench's page, which this one contains.
import "../allReduce/page";
import { chooseAllReduce } from "../../src/distributed/algorithms/choose";
import type { ProcessGroup } from "../../src/distributed/processGroup";
import { connectionTo, type Purpose } from "../allReduce/connections";
import { BareExchange } from "./bareExchange";
import { groupOver } from "./groupOver";
import { type GroupTurn, runGroupTurn } from "./groupTurn";

let group: ProcessGroup | null = null;
let bare: BareExchange | null = null;
let place = { rank: 0, worldSize: 1 };

const channels = (rank: number, worldSize: number, purpose: Purpose) =>
  new Map(
    Array.from({ length: worldSize }, (_, other) => other)
      .filter((other) => other !== rank)
      .map((other) => [other, connectionTo(other, purpose).channel]),
  );

/** Makes both sides of this tab, once its channels are open and before any tab sends. */
function prepareGroup(rank: number, worldSize: number): void {
  place = { rank, worldSize };
  bare = new BareExchange(channels(rank, worldSize, "bare"));
  group = groupOver(rank, channels(rank, worldSize, "ring"));
}

/** @returns milliseconds of one all-reduce. */
function groupTurn(turn: GroupTurn): Promise<number> {
  if (group === null) throw new Error("The group was not prepared.");
  return runGroupTurn(group, turn);
}

/** The same messages over bare channels. */
async function bareTurn({ bytes, repetitions }: GroupTurn): Promise<number> {
  if (bare === null) throw new Error("The bare channels were not prepared.");
  const schedule = chooseAllReduce(place, bytes)(place, bytes / 4);
  await bare.run(schedule);
  const start = performance.now();
  for (let repetition = 0; repetition < repetitions; repetition += 1) await bare.run(schedule);
  return (performance.now() - start) / repetitions;
}

const api = { prepareGroup, groupTurn, bareTurn };

declare global {
  interface Window {
    collectivesBench: typeof api;
  }
}

window.collectivesBench = api;
