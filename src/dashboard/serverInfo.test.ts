import { expect, test } from "vitest";
import { parseServerInfo } from "./serverInfo";

test("takes the origin for other machines", () => {
  expect(parseServerInfo({ version: "1.0.0", shareOrigin: "https://192.168.1.20:7374" })).toEqual({
    shareOrigin: "https://192.168.1.20:7374",
  });
});

test.each([{}, { shareOrigin: null }, { shareOrigin: "nowhere" }])("%j names no origin", (json) => {
  expect(parseServerInfo(json)).toEqual({ shareOrigin: null });
});

test("what isn't an object isn't the server's answer", () => {
  expect(() => parseServerInfo("<html>")).toThrow(/reload the page/);
});
