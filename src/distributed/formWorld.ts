import { concatBytes, fromHex, toHex } from "../base/bytes";
import type { Clock } from "../base/clock";
import { deferred } from "../base/deferred";
import { messageOf } from "../base/messageOf";
import type { Link, MemberId, Network } from "../transport/link";
import { memberId, memberIdBytes, shortId } from "../transport/memberId";
import { CollectiveError } from "./work";

/** How the ranks of a world find each other: rank 0 can be found, and the others find it. */
export interface Meeting {
  readonly network: Network;
  /** Rank 0 lets itself be found. */
  claim(): Promise<void>;
  /** The others' link to rank 0; rejects when it isn't there yet. */
  contact(): Promise<Link>;
}

export interface WorldOptions {
  readonly meeting: Meeting;
  readonly rank: number;
  readonly worldSize: number;
  readonly timeoutMilliseconds: number;
  readonly clock: Clock;
}

/** A control frame's step says what it means. Rank r says its rank to rank 0, which gives everyone the list of members. */
const greeting = 1;
const list = 2;
const retryMilliseconds = 500;

/**
 * Links every rank to every other one.
 * @returns the members by rank.
 * @throws CollectiveError naming the ranks that didn't come in time.
 */
export async function formWorld(options: WorldOptions): Promise<readonly MemberId[]> {
  const { rank, worldSize, clock, timeoutMilliseconds } = options;
  const missing = new Set(Array.from({ length: worldSize }, (_, other) => other).filter((other) => other !== rank));
  const late = deferred<never>();
  late.promise.catch(() => {});
  const timer = clock.setTimeout(
    () =>
      late.reject(
        new CollectiveError(
          `Rank ${rank} of ${worldSize} waited ${timeoutMilliseconds / 1000} s for rank ${[...missing].join(", ")}.`,
        ),
      ),
    timeoutMilliseconds,
  );
  try {
    const members = await Promise.race([rank === 0 ? gather(options) : enter(options, late.promise), late.promise]);
    await Promise.race([linkAll(options, members, missing), late.promise]);
    return members;
  } finally {
    clock.clearTimeout(timer);
  }
}

/** Rank 0 learns who has which rank, and tells everyone. */
async function gather({ meeting, worldSize }: WorldOptions): Promise<readonly MemberId[]> {
  const { network } = meeting;
  const byRank = new Map<number, MemberId>([[0, network.self]]);
  const complete = deferred<void>();
  const listen = (link: Link) => {
    link.onFrame = (frame) => {
      // What comes next isn't for the forming of the world.
      link.onFrame = null;
      const rank = frame.payload[0];
      if (frame.kind !== "control" || frame.step !== greeting || rank === undefined)
        complete.reject(new CollectiveError(`Member ${shortId(link.peer)} didn't say its rank.`));
      else if (rank >= worldSize || byRank.has(rank))
        complete.reject(new CollectiveError(`Two members are rank ${rank} of a world of ${worldSize}.`));
      else byRank.set(rank, link.peer);
      if (byRank.size === worldSize) complete.resolve();
    };
  };
  network.onLink = listen;
  for (const link of network.links.values()) listen(link);
  await meeting.claim();
  await complete.promise;
  const members = Array.from({ length: worldSize }, (_, rank) => byRank.get(rank)!);
  const bytes = concatBytes(...members.map(fromHex));
  for (const link of network.links.values()) link.send(control(list), bytes);
  return members;
}

/** Another rank finds rank 0 and gets the list. */
async function enter(
  { meeting, rank, worldSize, clock }: WorldOptions,
  late: Promise<never>,
): Promise<readonly MemberId[]> {
  let isLate = false;
  late.catch(() => {
    isLate = true;
  });
  let link: Link | null = null;
  while (link === null) {
    try {
      link = await meeting.contact();
    } catch (error) {
      // Rank 0 may start later than this one; the time-out says when to give up.
      if (isLate) throw error;
      await new Promise<void>((resolve) => clock.setTimeout(resolve, retryMilliseconds));
    }
  }
  const root = link;
  const answer = deferred<Uint8Array<ArrayBuffer>>();
  root.onClose = (reason) => answer.reject(new CollectiveError(`Rank 0 is gone. ${reason}`));
  root.onFrame = (frame) => {
    root.onFrame = null;
    if (frame.kind === "control" && frame.step === list && frame.payload.length === worldSize * memberIdBytes)
      answer.resolve(frame.payload);
    else answer.reject(new CollectiveError("Rank 0 sent something else than the list of members."));
  };
  root.send(control(greeting), Uint8Array.of(rank));
  const bytes = await answer.promise;
  return Array.from({ length: worldSize }, (_, other) =>
    memberId(toHex(bytes.subarray(other * memberIdBytes, (other + 1) * memberIdBytes))),
  );
}

/** Every rank dials those after it, through rank 0, and waits for those before it. */
async function linkAll(
  { meeting, rank }: WorldOptions,
  members: readonly MemberId[],
  missing: Set<number>,
): Promise<void> {
  const { network } = meeting;
  const complete = deferred<void>();
  const arrived = (link: Link) => {
    missing.delete(members.indexOf(link.peer));
    if (missing.size === 0) complete.resolve();
  };
  network.onLink = arrived;
  for (const link of [...network.links.values()]) arrived(link);
  const root = members[0]!;
  if (rank > 0)
    for (const member of members.slice(rank + 1))
      network.dial(member, root).then(arrived, (error: unknown) => {
        complete.reject(new CollectiveError(messageOf(error)));
      });
  await complete.promise;
}

function control(step: number) {
  return { kind: "control", epoch: 0, step, channel: 0, offset: 0 } as const;
}
