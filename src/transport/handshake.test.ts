import { beforeAll, describe, expect, test } from "vitest";
import { seededRandom } from "../base/seededRandom";
import { Handshake, type HandshakeOptions, type HandshakeStep } from "./handshake";
import { createIdentity, deriveProofKeys, type Identity, rendezvousNames } from "./identity";

const fill = (length: number, byte: number) => new Uint8Array(length).fill(byte);
const secret = fill(16, 7);
const [certificateA, certificateB] = [fill(32, 1), fill(32, 2)];
const manifest = fill(32, 9);

let identityA: Identity;
let identityB: Identity;
let dialer: HandshakeOptions;
let acceptor: HandshakeOptions;

beforeAll(async () => {
  identityA = await createIdentity();
  identityB = await createIdentity();
  const keys = await deriveProofKeys(secret, "job");
  dialer = {
    role: "dialer",
    identity: identityA,
    keys,
    fingerprints: { local: certificateA, remote: certificateB },
    manifestHash: null,
    expectedPeer: null,
  };
  acceptor = {
    role: "acceptor",
    identity: identityB,
    keys,
    fingerprints: { local: certificateB, remote: certificateA },
    manifestHash: manifest,
    expectedPeer: null,
  };
});

/** Lets two sides talk until both are done; `alter` may change what travels. */
async function converse(
  a: Handshake,
  b: Handshake,
  alter: (from: "a" | "b", message: Uint8Array<ArrayBuffer>) => Uint8Array<ArrayBuffer> = (_, message) => message,
): Promise<{ a: HandshakeStep | null; b: HandshakeStep | null }> {
  const results: { a: HandshakeStep | null; b: HandshakeStep | null } = { a: null, b: null };
  const messages: { from: "a" | "b"; message: Uint8Array<ArrayBuffer> }[] = [
    { from: "a", message: a.hello() },
    { from: "b", message: b.hello() },
  ];
  for (let next = messages.shift(); next !== undefined; next = messages.shift()) {
    const to = next.from === "a" ? "b" : "a";
    if (results[to] !== null) continue;
    const step = await (to === "a" ? a : b).receive(alter(next.from, next.message).slice());
    if (step.kind !== "proven") for (const message of step.send) messages.push({ from: to, message });
    if (step.kind !== "more") results[to] = step;
  }
  return results;
}

const sentences = ({ a, b }: { a: HandshakeStep | null; b: HandshakeStep | null }) =>
  [a, b].map((step) => (step?.kind === "refused" ? `${step.code}: ${step.sentence}` : step?.kind));

test("two that know the secret accept each other, and the joiner learns the manifest's hash", async () => {
  const { a, b } = await converse(new Handshake(dialer), new Handshake(acceptor));
  expect(a).toEqual({
    kind: "proven",
    peer: { member: identityB.member, publicKey: identityB.publicKey, manifestHash: manifest },
  });
  expect(b).toEqual({
    kind: "proven",
    peer: { member: identityA.member, publicKey: identityA.publicKey, manifestHash: manifest },
  });
});

test("a member's id is 32 hexadecimal digits of its public key's hash", async () => {
  const hash = new Uint8Array(await crypto.subtle.digest("SHA-256", identityA.publicKey));
  expect(identityA.member).toBe(Buffer.from(hash.subarray(0, 16)).toString("hex"));
});

describe("refused, with a sentence on both sides:", () => {
  test("a wrong secret", async () => {
    const keys = await deriveProofKeys(fill(16, 8), "job");
    const result = await converse(new Handshake({ ...dialer, keys }), new Handshake(acceptor));
    const sentence = (member: string) =>
      `secret: Member ${member.slice(0, 8)} and this side don't have the same secret: one of the two links is wrong or incomplete, or an old proof was repeated.`;
    expect(sentences(result)).toEqual([sentence(identityB.member), sentence(identityA.member)]);
  });

  test("the secret of another job", async () => {
    const keys = await deriveProofKeys(secret, "another job");
    const result = await converse(new Handshake({ ...dialer, keys }), new Handshake(acceptor));
    expect(sentences(result).map((sentence) => sentence?.split(":")[0])).toEqual(["secret", "secret"]);
  });

  test("another version", async () => {
    const result = await converse(new Handshake(dialer), new Handshake(acceptor), (from, message) => {
      if (from === "b" && message[0] === 1) message[5] = 2;
      return message;
    });
    expect(sentences(result)).toEqual([
      "version: A peer speaks version 2 of the protocol, this side version 1: reload the page that is older.",
      "version: The peer speaks another version of the protocol: reload the page that is older.",
    ]);
  });

  test("another certificate", async () => {
    const interceptor = fill(32, 3);
    const a = new Handshake({ ...dialer, fingerprints: { local: certificateA, remote: interceptor } });
    const b = new Handshake({ ...acceptor, fingerprints: { local: certificateB, remote: interceptor } });
    const sentence =
      "fingerprint: The two ends see different DTLS certificates: somebody sits between them, or repeats an old hello.";
    expect(sentences(await converse(a, b))).toEqual([sentence, sentence]);
  });

  test("another certificate although the one in the middle rewrites the hellos", async () => {
    const interceptor = fill(32, 3);
    const a = new Handshake({ ...dialer, fingerprints: { local: certificateA, remote: interceptor } });
    const b = new Handshake({ ...acceptor, fingerprints: { local: certificateB, remote: interceptor } });
    const result = await converse(a, b, (from, message) => {
      if (message[0] !== 1) return message;
      message.set(interceptor, message.length - 64);
      message.set(from === "a" ? certificateB : certificateA, message.length - 32);
      return message;
    });
    expect(sentences(result).map((sentence) => sentence?.split(":")[0])).toEqual(["secret", "secret"]);
  });

  test("another manifest", async () => {
    const result = await converse(new Handshake({ ...dialer, manifestHash: fill(32, 8) }), new Handshake(acceptor));
    expect(sentences(result)).toEqual([
      "manifest: A peer runs another job under the same address: its manifest's hash is 09090909, this side's is 08080808.",
      "manifest: A peer runs another job under the same address: its manifest's hash is 08080808, this side's is 09090909.",
    ]);
  });

  test("a manifest that was changed on the way to a joiner", async () => {
    const result = await converse(new Handshake(dialer), new Handshake(acceptor), (from, message) => {
      if (from === "b" && message[0] === 1) message.fill(5, 105, 137);
      return message;
    });
    expect(sentences(result).map((sentence) => sentence?.split(":")[0])).toEqual(["secret", "secret"]);
  });

  test("two that don't know the manifest", async () => {
    const result = await converse(new Handshake(dialer), new Handshake({ ...acceptor, manifestHash: null }));
    const sentence = "manifest: Neither this side nor the peer knows the job's manifest: nobody runs the job here.";
    expect(sentences(result)).toEqual([sentence, sentence]);
  });

  test("another member than the one dialled", async () => {
    const result = await converse(
      new Handshake({ ...dialer, expectedPeer: identityA.member }),
      new Handshake(acceptor),
    );
    expect(sentences(result)).toEqual([
      `identity: Member ${identityA.member.slice(0, 8)} was dialled, but member ${identityB.member.slice(0, 8)} answered.`,
      "identity: The peer didn't get a proof of the identity it expected.",
    ]);
  });

  test("a member's public key without its private key", async () => {
    const thief = { ...identityA, sign: identityB.sign };
    const result = await converse(new Handshake({ ...dialer, identity: thief }), new Handshake(acceptor));
    expect(sentences(result)[1]).toBe(
      `identity: A peer claims to be member ${identityA.member.slice(0, 8)}, but doesn't hold its private key.`,
    );
  });

  test("a side that takes too long", async () => {
    const a = new Handshake(dialer);
    const step = a.expire(10_000);
    expect(sentences({ a: step, b: null })[0]).toBe("late: A peer didn't finish its proof within 10 s.");
    expect(step.kind === "refused" && step.send).toEqual([Uint8Array.of(3, 8)]);
  });
});

describe("someone without the secret", () => {
  test("gains nothing by echoing every message", async () => {
    for (const options of [dialer, acceptor]) {
      const victim = new Handshake(options);
      const step = await victim.receive(victim.hello());
      expect(sentences({ a: step, b: null })[0]).toBe("echo: A peer sent this side's own messages back.");
    }
  });

  test("gains nothing by reflecting proofs between two of the victim's connections", async () => {
    // Both ends of the attacker's two connections are victims' acceptors: the hello of one is passed to the other with its role changed.
    const [first, second] = [new Handshake(acceptor), new Handshake({ ...acceptor, identity: identityA })];
    const turned = (message: Uint8Array<ArrayBuffer>) => {
      const copy = message.slice();
      copy[7] = 1;
      copy.set(certificateA, copy.length - 64);
      copy.set(certificateB, copy.length - 32);
      return copy;
    };
    const [toSecond, toFirst] = [
      await first.receive(turned(second.hello())),
      await second.receive(turned(first.hello())),
    ];
    if (toSecond.kind !== "more" || toFirst.kind !== "more") throw new Error("The hellos should be taken.");
    const verdicts = [await second.receive(toSecond.send[0]!), await first.receive(toFirst.send[0]!)];
    expect(verdicts.map((step) => step.kind === "refused" && step.code)).toEqual(["secret", "secret"]);
  });

  test("gains nothing by replaying a whole conversation", async () => {
    const recorded: Uint8Array<ArrayBuffer>[] = [];
    const { b } = await converse(new Handshake(dialer), new Handshake(acceptor), (from, message) => {
      if (from === "a") recorded.push(message.slice());
      return message;
    });
    expect(b?.kind).toBe("proven");
    const victim = new Handshake(acceptor);
    expect((await victim.receive(recorded[0]!)).kind).toBe("more");
    const step = await victim.receive(recorded[1]!);
    expect(step.kind === "refused" && step.code).toBe("secret");
    expect((await victim.receive(recorded[2]!)).kind).toBe("refused");
  });

  test("can't skip the proof", async () => {
    const victim = new Handshake(acceptor);
    await victim.receive(new Handshake(dialer).hello());
    const step = await victim.receive(Uint8Array.of(3, 0));
    expect(sentences({ a: step, b: null })[0]).toBe("malformed: A peer accepted a proof that it didn't get.");
  });

  test("is refused whatever single byte of a proof changes", async () => {
    const seed = 5;
    const random = seededRandom(seed);
    for (let round = 0; round < 60; round += 1) {
      let changed = false;
      const { b } = await converse(new Handshake(dialer), new Handshake(acceptor), (from, message) => {
        if (from === "a" && message[0] === 2) {
          const at = Math.floor(random() * message.length);
          message[at] = message[at]! ^ (1 + Math.floor(random() * 255));
          changed = true;
        }
        return message;
      });
      expect([changed, b?.kind], `seed ${seed}, round ${round}`).toEqual([true, "refused"]);
    }
  });
});

test("random messages of any length are refused at every stage and throw nothing", async () => {
  const seed = 6;
  const random = seededRandom(seed);
  for (let round = 0; round < 400; round += 1) {
    const victim = new Handshake(acceptor);
    if (round % 3 === 1) await victim.receive(new Handshake(dialer).hello());
    const junk = Uint8Array.from({ length: Math.floor(random() * 300) }, () => Math.floor(random() * 256));
    if (round % 2 === 0 && junk.length > 0) junk[0] = 1 + (round % 3);
    expect((await victim.receive(junk)).kind, `seed ${seed}, round ${round}`).toBe("refused");
  }
});

test("a secret of another length is refused, and rendezvous names reveal nothing but a hash", async () => {
  await expect(deriveProofKeys(new Uint8Array(15), "job")).rejects.toThrow(
    "A job's secret has 16 bytes, this one has 15: the link is incomplete.",
  );
  const names = await rendezvousNames("job", 3);
  expect(names.map((name) => /^[0-9a-f]{32}-[012]$/.test(name))).toEqual([true, true, true]);
  expect(new Set(names).size).toBe(3);
  expect(await rendezvousNames("job", 3)).toEqual(names);
});
