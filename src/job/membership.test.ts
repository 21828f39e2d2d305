import { describe, expect, it } from "vitest";
import type { MemberId } from "../transport/link";
import { memberId } from "../transport/memberId";
import { trainingRun } from "./coordinator";
import { Membership } from "./membership";
import type { Effect, Standing } from "./membershipEvents";
import type { ControlMessage, Generation } from "./messages";

const [ada, grace, alan, mary] = ["a", "b", "c", "d"].map((digit) => memberId(digit.repeat(32))) as [
  MemberId,
  MemberId,
  MemberId,
  MemberId,
];
const standing: Standing = { committed: 7, buckets: true, validated: 0, computing: false, samplesPerSecond: 100 };

function machine(self: MemberId): Membership {
  return new Membership({ self, batch: 96, steps: 100, nameOf: (id) => id.slice(0, 1) });
}

const sent = (effects: readonly Effect[]) =>
  effects.flatMap((effect) => (effect.kind === "send" ? [{ receiver: effect.to, ...effect.message }] : []));

/** A member that has adopted a generation of all three, as `self`. */
function inRing(self: MemberId): Membership {
  const membership = machine(self);
  for (const peer of [ada, grace, alan]) if (peer !== self) membership.handle({ kind: "linked", peer });
  const hear = (message: ControlMessage) => membership.handle({ kind: "message", from: ada, message });
  membership.handle({ kind: "view", epoch: 1, members: [ada], from: ada });
  membership.handle({ kind: "join" });
  hear({ kind: "prepare", epoch: 5, boundary: 3, members: [ada, grace, alan], reason: "" });
  membership.handle({ kind: "held", epoch: 5, standing });
  const generation: Generation = {
    kind: "generation",
    epoch: 5,
    members: [ada, grace, alan].map((id, rank) => ({ id, from: 32 * rank, count: 32 })),
    startStep: 7,
    validate: false,
    run: trainingRun,
    reason: "",
  };
  hear(generation);
  expect(membership.generation).toEqual(generation);
  return membership;
}

describe("Membership", () => {
  it("refuses what is prepared under an epoch that is taken, and says which", () => {
    const membership = inRing(alan);
    const message = { kind: "prepare", epoch: 5, boundary: 0, members: [ada, grace, alan], reason: "" } as const;
    expect(sent(membership.handle({ kind: "message", from: ada, message }))).toEqual([
      { receiver: ada, kind: "stale", epoch: 5 },
    ]);
  });

  it("follows no coordinator while a lower rank is alive, and does once it isn't", () => {
    const membership = inRing(alan);
    const message = { kind: "prepare", epoch: 6, boundary: 0, members: [grace, alan], reason: "" } as const;
    expect(sent(membership.handle({ kind: "message", from: grace, message }))).toEqual([
      { receiver: grace, kind: "outranked", epoch: 5, coordinator: ada },
    ]);
    membership.handle({ kind: "unlinked", peer: ada, reason: "gone" });
    expect(membership.handle({ kind: "message", from: grace, message })).toContainEqual({
      kind: "hold",
      epoch: 6,
      boundary: 0,
      reason: "",
    });
  });

  it("takes over with a higher epoch when it is the lowest rank alive", () => {
    const membership = inRing(grace);
    const effects = membership.handle({ kind: "unlinked", peer: ada, reason: "The link broke." });
    expect(sent(effects)).toEqual([
      { receiver: alan, kind: "prepare", epoch: 6, boundary: 0, members: [grace, alan], reason: "The link broke." },
    ]);
    expect(effects).toContainEqual({ kind: "hold", epoch: 6, boundary: 0, reason: "The link broke." });
  });

  it("asks the heir when it isn't that itself, and closes the link to an heir that does nothing", () => {
    const membership = inRing(alan);
    const effects = membership.handle({ kind: "unlinked", peer: ada, reason: "The link broke." });
    expect(sent(effects)).toEqual([
      { receiver: grace, kind: "trouble", epoch: 5, lost: null, sentence: "The link broke." },
    ]);
    expect(membership.handle({ kind: "timer", timer: "regroup" })).toContainEqual(
      expect.objectContaining({ kind: "close", peer: grace }),
    );
    membership.handle({ kind: "unlinked", peer: grace, reason: "closed" });
    const alone = membership.handle({ kind: "held", epoch: 6, standing });
    expect(alone).toContainEqual(
      expect.objectContaining({
        kind: "adopt",
        generation: expect.objectContaining({ epoch: 6, members: [{ id: alan, from: 0, count: 96 }], startStep: 7 }),
      }),
    );
  });

  it("dials a lost coordinator once through who still has a link to it, and steps down when that fails", () => {
    const membership = inRing(grace);
    membership.handle({ kind: "unlinked", peer: ada, reason: "The link broke." });
    const outranked = { kind: "outranked", epoch: 5, coordinator: ada } as const;
    const effects = membership.handle({ kind: "message", from: alan, message: outranked });
    expect(effects).toContainEqual({ kind: "dial", peer: ada, via: alan });
    membership.handle({ kind: "dialled", peer: ada, problem: "It can't be reached." });
    expect(membership.handle({ kind: "timer", timer: "regroup" })).toContainEqual(
      expect.objectContaining({ kind: "released", problem: expect.stringContaining("can't be reached from here") }),
    );
    expect(membership.role).toBe("watching");
  });

  it("ignores reports, generations and orders that belong to no round of its own", () => {
    const membership = inRing(alan);
    const before = membership.generation;
    const strange: readonly ControlMessage[] = [
      { kind: "report", epoch: 6, ...standing, links: [] },
      { kind: "synced", epoch: 6, committed: 9 },
      { kind: "serve", epoch: 6, to: mary, what: "training" },
      { kind: "connect", epoch: 6, peer: mary },
      { kind: "generation", epoch: 9, members: [], startStep: 0, validate: false, run: trainingRun, reason: "" },
      { kind: "released", epoch: 5, problem: "old" },
      { kind: "trouble", epoch: 4, lost: null, sentence: "old" },
      { kind: "leave" },
      { kind: "join" },
    ];
    for (const message of strange) expect(membership.handle({ kind: "message", from: grace, message })).toEqual([]);
    expect(membership.generation).toBe(before);
  });

  it("brings a member that is one step behind forward with the buckets of one that holds them", () => {
    const membership = machine(ada);
    membership.handle({ kind: "create", run: trainingRun });
    for (const peer of [grace, alan]) {
      membership.handle({ kind: "linked", peer });
      membership.handle({ kind: "message", from: peer, message: { kind: "join" } });
    }
    // Ada's own first round is for Grace alone; the next takes Alan in.
    const answer = (epoch: number, from: MemberId, own: Partial<Standing>) =>
      membership.handle({
        kind: "message",
        from,
        message: { kind: "report", epoch, ...standing, ...own, links: [ada, grace, alan] },
      });
    membership.handle({ kind: "held", epoch: 2, standing });
    expect(sent(answer(2, grace, { committed: -1, buckets: false }))).toEqual([]);
    membership.handle({ kind: "message", from: grace, message: { kind: "synced", epoch: 2, committed: 7 } });
    // The round for Alan: Grace holds step 7's buckets, Ada doesn't.
    membership.handle({ kind: "held", epoch: 3, standing });
    answer(3, grace, { committed: 8 });
    const effects = answer(3, alan, { committed: -1, buckets: false });
    expect(effects.filter(({ kind }) => kind === "send")).toEqual([
      { kind: "send", to: grace, message: { kind: "serve", epoch: 3, to: ada, what: "buckets" } },
      { kind: "send", to: grace, message: { kind: "serve", epoch: 3, to: alan, what: "training" } },
    ]);
  });
});
