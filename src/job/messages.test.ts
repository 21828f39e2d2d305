import { describe, expect, it } from "vitest";
import { seededRandom } from "../base/seededRandom";
import { memberId } from "../transport/memberId";
import { type ControlMessage, decodeMessage, encodeMessage, maxControlBytes } from "./messages";
import { SchemaError } from "./schema";

const ada = memberId("0a".repeat(16));
const messages: readonly ControlMessage[] = [
  { kind: "hello", name: "Ada", gpu: { vendor: "amd", architecture: "rdna-3", description: "" }, member: true },
  { kind: "join" },
  { kind: "prepare", epoch: 3, boundary: 17, members: [ada], reason: "Grace joins." },
  {
    kind: "generation",
    epoch: 3,
    members: [{ id: ada, from: 0, count: 256 }],
    startStep: 17,
    validate: false,
    run: { kind: "training", by: "", reason: "", until: 0 },
    reason: "Grace joins.",
  },
  { kind: "released", epoch: 4, problem: null },
];
const decode = (json: unknown) => decodeMessage(new TextEncoder().encode(JSON.stringify(json)));

describe("control messages", () => {
  it("come through as they were sent", () => {
    for (const message of messages) expect(decodeMessage(encodeMessage(message))).toEqual(message);
  });

  const wrong: readonly [unknown, string][] = [
    [null, "There is no control message undefined."],
    [{ kind: "explode" }, 'There is no control message "explode".'],
    [{ kind: "toString" }, 'There is no control message "toString".'],
    [{ kind: "prepare", epoch: 1, boundary: 0, members: [] }, "prepare.reason must be a text"],
    [{ kind: "prepare", epoch: -1, boundary: 0, members: [], reason: "" }, "prepare.epoch must be a whole number"],
    [{ kind: "join", extra: 1 }, "join has no extra"],
    [{ kind: "outranked", epoch: 1, coordinator: "nobody" }, "outranked.coordinator must be a member's id"],
    [
      { ...messages[3], members: Array.from({ length: 65 }, () => ({ id: ada, from: 0, count: 1 })) },
      "generation.members must be a list of at most 64",
    ],
    [{ ...messages[0], name: "x".repeat(65) }, "hello.name must be a text of at most 64 characters"],
  ];
  for (const [json, sentence] of wrong)
    it(`are refused with a sentence: ${sentence}`, () => {
      expect(() => decode(json)).toThrow(SchemaError);
      expect(() => decode(json)).toThrow(sentence);
    });

  it("are refused when too long or no JSON", () => {
    expect(() => decodeMessage(new Uint8Array(maxControlBytes + 1))).toThrow("at most 61440 are allowed");
    expect(() => decodeMessage(new Uint8Array([0xff, 0xfe]))).toThrow("isn't JSON");
  });

  it("never make the reader throw anything but a SchemaError, whatever the bytes", () => {
    for (let seed = 1; seed <= 3000; seed += 1) {
      const random = seededRandom(seed);
      const bytes = encodeMessage(messages[Math.floor(random() * messages.length)]!);
      for (let change = 0; change < 3; change += 1)
        bytes[Math.floor(random() * bytes.length)] = Math.floor(random() * 256);
      try {
        decodeMessage(bytes);
      } catch (error) {
        expect(error, `seed ${seed}`).toBeInstanceOf(SchemaError);
      }
    }
  });
});
