import { expect, test } from "vitest";
import { ServerError } from "./errors";
import { parseIceServers } from "./iceServers";

test("STUN and TURN servers are read as RTCPeerConnection takes them", () => {
  const text = `[{"urls": "stun:a.example"}, {"urls": ["turn:b.example", "turns:b.example:443"], "username": "u", "credential": "c"}]`;
  expect(parseIceServers(text)).toEqual([
    { urls: ["stun:a.example"] },
    { urls: ["turn:b.example", "turns:b.example:443"], username: "u", credential: "c" },
  ]);
  expect(parseIceServers("[]")).toEqual([]);
});

test.each([
  ["stun:a.example", "is not JSON"],
  [`{"urls": "stun:a.example"}`, "is not an array"],
  [`["stun:a.example"]`, "Entry 1 of RINGLET_ICE_SERVERS is not an object"],
  [`[{"urls": "stun:a.example"}, {"urls": "http://a.example"}]`, `Entry 2 of RINGLET_ICE_SERVERS needs "urls"`],
  [`[{"urls": []}]`, `needs "urls"`],
  [`[{}]`, `needs "urls"`],
  [`[{"urls": "turn:b.example"}]`, `needs a "username" and a "credential"`],
  [`[{"urls": "stun:b.example", "username": 1}]`, "that is not text"],
])("%s is refused with a sentence", (text, sentence) => {
  expect(() => parseIceServers(text)).toThrow(ServerError);
  expect(() => parseIceServers(text)).toThrow(sentence);
});
