import { expect, test } from "vitest";
import { parseIceServers } from "./iceServers";

test("no text is no servers", () => {
  expect(parseIceServers("  \n")).toEqual([]);
});

test("reads servers as RTCIceServer has them, without what it hasn't", () => {
  const text =
    '[{"urls":["stun:a.example","turns:b.example:443"],"username":"u","credential":"c","x":1},{"urls":"stun:c"}]';
  expect(parseIceServers(text)).toEqual([
    { urls: ["stun:a.example", "turns:b.example:443"], username: "u", credential: "c" },
    { urls: "stun:c" },
  ]);
});

test.each([
  ["not JSON", "stun:a.example", /must be JSON/],
  ["no list", '{"urls": "stun:a.example"}', /must be a list/],
  ["no urls", '[{"urls": "stun:a"}, {"url": "stun:b"}]', /ICE server 2 needs "urls"/],
  ["another protocol", '[{"urls": "https://a.example"}]', /ICE server 1 needs "urls"/],
  ["an empty list of urls", '[{"urls": []}]', /ICE server 1 needs "urls"/],
  ["null", "[null]", /ICE server 1 needs "urls"/],
  ["a user that is no text", '[{"urls": "turn:a", "username": 5}]', /ICE server 1's username must be text/],
])("%s is refused with a sentence", (_, text, sentence) => {
  expect(() => parseIceServers(text)).toThrow(sentence);
});
