import { expect, test } from "vitest";
import { cosine, integerPower, power } from "./elementary";

test("the elementary functions agree with Math to 1e-14", () => {
  for (let i = -200; i <= 200; i++) expect(Math.abs(cosine(i / 20) - Math.cos(i / 20))).toBeLessThan(1e-14);
  for (let i = 0; i <= 200; i++) {
    const [base, exponent] = [0.05 + i / 40, i / 17];
    expect(Math.abs(power(base, exponent) / base ** exponent - 1)).toBeLessThan(2e-14);
    expect(Math.abs(power(base, -exponent) / base ** -exponent - 1)).toBeLessThan(2e-14);
  }
  expect(cosine(0)).toBe(1);
  expect(power(0.96, 0)).toBe(1);
  expect(integerPower(0.5, 10)).toBe(2 ** -10);
});
