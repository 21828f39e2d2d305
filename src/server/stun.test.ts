import { createSocket } from "node:dgram";
import { expect, test } from "vitest";
import { answerStun, startStun } from "./stun";

const sender = { address: "192.0.2.1", port: 32853 };
const transaction = [0xb7, 0xe7, 0xa7, 0x01, 0xbc, 0x34, 0xd6, 0x86, 0xfa, 0x87, 0xdf, 0xae];
const cookie = [0x21, 0x12, 0xa4, 0x42];
const request = (attributes: readonly number[] = []) =>
  Uint8Array.from([0, 1, attributes.length >> 8, attributes.length & 255, ...cookie, ...transaction, ...attributes]);

test("a Binding request from IPv4 is answered with RFC 5769's XOR-MAPPED-ADDRESS", () => {
  expect([...(answerStun(request(), sender) ?? [])]).toEqual([
    ...[0x01, 0x01, 0, 12, ...cookie, ...transaction],
    ...[0x00, 0x20, 0, 8, 0, 0x01, 0xa1, 0x47, 0xe1, 0x12, 0xa6, 0x43],
  ]);
});

test("a Binding request from IPv6 is answered with RFC 5769's XOR-MAPPED-ADDRESS", () => {
  const answer = answerStun(request(), { address: "2001:db8:1234:5678:11:2233:4455:6677", port: 32853 });
  expect([...(answer ?? [])]).toEqual([
    ...[0x01, 0x01, 0, 24, ...cookie, ...transaction],
    ...[0x00, 0x20, 0, 20, 0, 0x02, 0xa1, 0x47],
    ...[0x01, 0x13, 0xa9, 0xfa, 0xa5, 0xd3, 0xf1, 0x79, 0xbc, 0x25, 0xf4, 0xb5, 0xbe, 0xd2, 0xb9, 0xd9],
  ]);
});

test("optional attributes and credentials don't matter", () => {
  const software = [0x80, 0x22, 0, 3, 1, 2, 3, 0];
  const username = [0x00, 0x06, 0, 4, 1, 2, 3, 4];
  expect(answerStun(request([...software, ...username]), sender)).toEqual(answerStun(request(), sender));
});

test("an attribute that must be understood and is not gets error 420 and its name", () => {
  expect([...(answerStun(request([0x00, 0x77, 0, 0]), sender) ?? [])]).toEqual([
    ...[0x01, 0x11, 0, 16, ...cookie, ...transaction],
    ...[0x00, 0x09, 0, 4, 0, 0, 4, 20],
    ...[0x00, 0x0a, 0, 2, 0x00, 0x77, 0, 0],
  ]);
});

test.each([
  ["nothing", new Uint8Array(0)],
  ["half a header", request().subarray(0, 19)],
  ["an answer", Uint8Array.from(request(), (byte, index) => (index === 0 ? 1 : byte))],
  ["another magic cookie", Uint8Array.from(request(), (byte, index) => (index === 4 ? 0 : byte))],
  ["a length that isn't the datagram's", Uint8Array.from([...request(), 0, 0, 0, 0])],
  ["an attribute that ends after the datagram", request([0x80, 0x22, 0xff, 0xff])],
])("%s is not answered", (_, bytes) => {
  expect(answerStun(bytes, sender)).toBeNull();
});

test("no garbage throws, and no answer is much larger than the longest plain one", () => {
  const seed = 20_261;
  let state = seed;
  const random = (below: number) => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return Math.floor((state / 2 ** 32) * below);
  };
  for (let round = 0; round < 20_000; round++) {
    const attributes = Array.from({ length: 4 * random(12) }, () => random(4) * random(64));
    const bytes = request(attributes);
    for (let flips = random(3); flips > 0; flips--) bytes[random(bytes.length)] = random(256);
    const answer = answerStun(bytes.subarray(0, random(4) === 0 ? random(bytes.length) : bytes.length), sender);
    expect(answer?.byteLength ?? 0, `seed ${seed}, round ${round}`).toBeLessThanOrEqual(44);
  }
});

test("a responder on UDP tells each sender its own address, garbage before it or not", async () => {
  const stun = await startStun(["127.0.0.1"], 0);
  const client = createSocket("udp4");
  try {
    await new Promise<void>((done) => client.bind(0, "127.0.0.1", done));
    const answer = new Promise<Buffer>((resolve) => client.once("message", resolve));
    client.send(Uint8Array.from([1, 2, 3]), stun.port, "127.0.0.1");
    client.send(request(), stun.port, "127.0.0.1");
    const expected = answerStun(request(), { address: "127.0.0.1", port: client.address().port });
    expect([...(await answer)]).toEqual([...(expected ?? [])]);
  } finally {
    client.close();
    await stun.close();
  }
});
