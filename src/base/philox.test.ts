import { expect, test } from "vitest";
import { PhiloxStream, philox4x32 } from "./philox";

// From Random123's known-answer tests (kat_vectors), philox 4x32, 10 rounds.
test.each([
  { counter: [0, 0, 0, 0], key: [0, 0], words: [0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8] },
  {
    counter: [0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff],
    key: [0xffffffff, 0xffffffff],
    words: [0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd],
  },
  {
    counter: [0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344],
    key: [0xa4093822, 0x299f31d0],
    words: [0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1],
  },
])("gives the published words for counter $counter and key $key", ({ counter, key, words }) => {
  expect([...philox4x32(counter, key)]).toEqual(words);
});

test("a stream's words don't depend on the order in which they are drawn", () => {
  const forward = new PhiloxStream(7, [1, 2]);
  const backward = new PhiloxStream(7, [1, 2]);
  const up = Array.from({ length: 11 }, (_, i) => forward.word(i));
  const down = Array.from({ length: 11 }, (_, i) => backward.word(10 - i)).reverse();
  expect(down).toEqual(up);
  expect(new Set(up).size).toBe(11);
});

test("uniform numbers lie in [0, 1) and are exact in float32", () => {
  const stream = new PhiloxStream(1);
  let sum = 0;
  for (let i = 0; i < 4000; i++) {
    const x = stream.uniform(i);
    expect(Math.fround(x)).toBe(x);
    expect(x).toBeLessThan(1);
    sum += x;
  }
  // The mean of 4000 has a standard deviation of 0.0046.
  expect(Math.abs(sum / 4000 - 0.5)).toBeLessThan(0.02);
});

test("a seed that is no safe integer is refused", () => {
  expect(() => new PhiloxStream(0.5)).toThrow("The seed is 0.5; expected an integer");
});
