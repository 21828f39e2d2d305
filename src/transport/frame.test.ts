import { expect, test } from "vitest";
import { seededRandom } from "../base/seededRandom";
import { decodeFrame, encodeFrame, headerBytes, type WireHeader } from "./frame";

const kinds = ["heartbeat", "signal", "control", "chunk", "state", "goodbye"] as const;

test("a frame's bytes are where the layout says", () => {
  const bytes = encodeFrame(
    { kind: "chunk", epoch: 0x01020304, step: 5, channel: 6, offset: 0xfffffffe },
    Uint8Array.of(170, 187),
    new Uint8Array(64),
  );
  expect([...bytes]).toEqual([
    1, 4, 0, 0, 4, 3, 2, 1, 5, 0, 0, 0, 6, 0, 0, 0, 254, 255, 255, 255, 2, 0, 0, 0, 170, 187,
  ]);
});

test("every frame that is written is read back, its payload without a copy", () => {
  const seed = 11;
  const random = seededRandom(seed);
  const integer = () => Math.floor(random() * 2 ** 32);
  for (let round = 0; round < 2000; round += 1) {
    const header: WireHeader = {
      kind: kinds[round % kinds.length]!,
      epoch: integer(),
      step: integer(),
      channel: integer(),
      offset: integer(),
    };
    const payload = Uint8Array.from({ length: Math.floor(random() * 100) }, () => integer() & 255);
    const message = encodeFrame(header, payload, new Uint8Array(200)).slice().buffer;
    const frame = decodeFrame(message);
    expect(frame, `seed ${seed}, round ${round}`).toEqual({ ...header, payload });
    if (typeof frame !== "string") expect(frame.payload.buffer).toBe(message);
  }
});

test("random bytes and altered frames are frames that stay within the message, or a sentence", () => {
  const seed = 12;
  const random = seededRandom(seed);
  let sentences = 0;
  for (let round = 0; round < 20_000; round += 1) {
    let message = Uint8Array.from({ length: Math.floor(random() * 60) }, () => Math.floor(random() * 256));
    if (round % 2 === 0) {
      const payload = message;
      message = encodeFrame({ kind: "state", epoch: 1, step: 2, channel: 3, offset: 4 }, payload, new Uint8Array(100));
      message = message.slice(0, random() < 0.3 ? Math.floor(random() * message.length) : message.length);
      const at = Math.floor(random() * message.length);
      if (at < message.length) message[at] = Math.floor(random() * 256);
    }
    const result = decodeFrame(message.slice().buffer);
    if (typeof result === "string") {
      sentences += 1;
      expect(result).toMatch(/^A .*\.$/);
    } else {
      expect(kinds, `seed ${seed}, round ${round}`).toContain(result.kind);
      expect(result.payload.length).toBe(message.length - headerBytes);
    }
  }
  expect(sentences).toBeGreaterThan(10_000);
});

test("each defect has its sentence", () => {
  const good = encodeFrame(
    { kind: "control", epoch: 1, step: 2, channel: 3, offset: 4 },
    new Uint8Array(3),
    new Uint8Array(64),
  ).slice();
  const altered = (at: number, value: number) => {
    const bytes = good.slice();
    bytes[at] = value;
    return decodeFrame(bytes.buffer);
  };
  expect(decodeFrame(good.slice(0, 23).buffer)).toBe("A message of 23 bytes is no frame: a header alone has 24.");
  expect(altered(0, 2)).toBe("A frame has version 2; this side speaks version 1.");
  expect(altered(1, 0)).toBe("A frame is of kind 0, which there isn't.");
  expect(altered(1, 7)).toBe("A frame is of kind 7, which there isn't.");
  expect(altered(3, 1)).toBe("A frame's bytes 2 and 3 must be zero.");
  expect(altered(20, 4)).toBe("A frame says that its payload has 4 bytes, but 3 came.");
});

test("what doesn't fit the layout isn't written", () => {
  const header: WireHeader = { kind: "chunk", epoch: 0, step: 0, channel: 0, offset: 0 };
  const into = new Uint8Array(100);
  for (const step of [-1, 1.5, 2 ** 32, Number.NaN])
    expect(() => encodeFrame({ ...header, step }, new Uint8Array(0), into)).toThrow(
      `A frame's step must be an integer from 0 to 4294967295, got ${step}.`,
    );
  expect(() => encodeFrame(header, new Uint8Array(77), into)).toThrow("A frame of 101 bytes doesn't fit into 100");
});
