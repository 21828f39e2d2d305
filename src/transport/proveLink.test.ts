import { beforeAll, expect, test } from "vitest";
import { realClock } from "../base/clock";
import { encodeFrame } from "./frame";
import { createIdentity, deriveProofKeys, type Identity, type ProofKeys } from "./identity";
import type { Frame } from "./link";
import { type ProveLinkOptions, proveLink } from "./proveLink";
import { MemoryPipe } from "./testing/memoryPipe";

const [certificateA, certificateB] = [new Uint8Array(32).fill(1), new Uint8Array(32).fill(2)];
const manifestHash = new Uint8Array(32).fill(9);
const header = { kind: "chunk", epoch: 1, step: 2, channel: 3, offset: 4 } as const;

let identities: readonly [Identity, Identity];
let keys: ProofKeys;
let otherKeys: ProofKeys;
beforeAll(async () => {
  identities = [await createIdentity(), await createIdentity()];
  keys = await deriveProofKeys(new Uint8Array(16), "job");
  otherKeys = await deriveProofKeys(new Uint8Array(16).fill(1), "job");
});

function sides(changes: { readonly dialer?: Partial<ProveLinkOptions> } = {}) {
  const [a, b] = MemoryPipe.pair(realClock, 1e9);
  const shared = { keys, manifestHash, expectedPeer: null, clock: realClock };
  const facts = (local: Uint8Array<ArrayBuffer>, remote: Uint8Array<ArrayBuffer>) => async () => ({
    fingerprints: { local, remote },
    maxMessageBytes: 65_536,
  });
  const dial = () =>
    proveLink({
      ...shared,
      pipe: a,
      role: "dialer",
      identity: identities[0],
      facts: facts(certificateA, certificateB),
      ...changes.dialer,
    });
  const accept = () =>
    proveLink({
      ...shared,
      pipe: b,
      role: "acceptor",
      identity: identities[1],
      facts: facts(certificateB, certificateA),
    });
  return { a, b, dial, accept };
}

test("two sides that prove themselves get links that carry frames", async () => {
  const { a, b, dial, accept } = sides();
  const both = Promise.all([dial(), accept()]);
  a.open();
  b.open();
  const [dialled, accepted] = await both;
  expect([dialled.peer.member, accepted.peer.member]).toEqual([identities[1].member, identities[0].member]);
  const arrival = new Promise<Frame>((resolve) => (accepted.link.onFrame = resolve));
  dialled.link.send(header, Uint8Array.of(5));
  expect(await arrival).toEqual({ ...header, payload: Uint8Array.of(5) });
  dialled.link.close("The test is over.");
});

test("frames that come right behind the peer's verdict aren't lost", async () => {
  const { a, b, dial, accept } = sides();
  // The dialler's messages and its first frames arrive together.
  b.stuck = false;
  const accepted = accept();
  const dialled = dial().then(({ link }) => {
    for (let step = 0; step < 20; step += 1) link.send({ ...header, step }, new Uint8Array(8));
    return link;
  });
  a.open();
  b.open();
  const { link } = await accepted;
  const steps: number[] = [];
  await new Promise<void>((resolve) => {
    link.onFrame = (frame) => {
      steps.push(frame.step);
      if (steps.length === 20) resolve();
    };
  });
  expect(steps).toEqual(Array.from({ length: 20 }, (_, step) => step));
  (await dialled).close("The test is over.");
});

test("a wrong secret rejects on both sides with its code, and closes the pipes", async () => {
  const { a, b, dial, accept } = sides({ dialer: { keys: otherKeys } });
  const both = Promise.allSettled([dial(), accept()]);
  a.open();
  b.open();
  const results = await both;
  expect(results.map((result) => result.status === "rejected" && result.reason.code)).toEqual(["secret", "secret"]);
  expect([a.state, b.state]).toEqual(["closed", "closed"]);
});

test("a frame before the proof is refused unread", async () => {
  const { b, accept } = sides();
  const accepted = accept();
  b.open();
  b.inject(encodeFrame(header, new Uint8Array(100), new Uint8Array(200)));
  await expect(accepted).rejects.toMatchObject({
    code: "malformed",
    message: "A peer sent 124 bytes that aren't a hello of 201 bytes: it doesn't speak Ringlet's protocol.",
  });
});

test("a stranger that floods is dropped before its messages are looked at", async () => {
  const { b, accept } = sides();
  const accepted = accept();
  for (let count = 0; count < 5; count += 1) b.inject(new Uint8Array(60_000));
  b.open();
  await expect(accepted).rejects.toMatchObject({
    code: "malformed",
    message: "A peer sent more than its proof before it was proven.",
  });
  expect(b.state).toBe("closed");
});

test("a connection that closes before the proof is unreachable, not refused", async () => {
  const { a, b, accept } = sides();
  const accepted = accept();
  a.open();
  b.open();
  a.close();
  await expect(accepted).rejects.toMatchObject({ code: "unreachable" });
});
