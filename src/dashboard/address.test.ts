import { describe, expect, test } from "vitest";
import { addressSuffix, inviteLink, isLoopback, parseAddress } from "./address";

const address = { job: "3f9a12bc", secret: "AbCdEfGhIjKlMnOpQrSt_-" };

describe("parseAddress", () => {
  test("a page without a job is the start page, whatever its hash", () => {
    expect(parseAddress({ search: "", hash: "" })).toEqual({ kind: "start" });
    expect(parseAddress({ search: "?utm=1", hash: "#x" })).toEqual({ kind: "start" });
  });

  test("reads back what addressSuffix writes", () => {
    const url = new URL(`https://ringlet.example/${addressSuffix(address)}`);
    expect(parseAddress(url)).toEqual({ kind: "job", address });
  });

  test.each([
    ["no secret", "?job=3f9a12bc", "", /lacks its secret/],
    ["a secret that is cut off", "?job=3f9a12bc", "#AbCdEf", /cut off or damaged/],
    ["a secret with letters that base64url lacks", "?job=3f9a12bc", "#AbCdEfGhIjKlMnOpQrSt+/", /cut off or damaged/],
    ["an empty job", "?job=", "#AbCdEfGhIjKlMnOpQrSt_-", /doesn't name a job/],
    ["a job that is no id", "?job=../x", "#AbCdEfGhIjKlMnOpQrSt_-", /doesn't name a job/],
  ])("%s is a broken link with a sentence", (_, search, hash, sentence) => {
    const parsed = parseAddress({ search, hash });
    expect(parsed).toEqual({ kind: "broken", problem: expect.stringMatching(sentence) });
  });
});

describe("inviteLink", () => {
  const local = { origin: "http://localhost:7373", hostname: "localhost", pathname: "/" };

  test("replaces localhost by the origin for other machines", () => {
    expect(inviteLink(address, local, "https://192.168.1.20:7374")).toBe(
      "https://192.168.1.20:7374/?job=3f9a12bc#AbCdEfGhIjKlMnOpQrSt_-",
    );
  });

  test("keeps localhost when the server knows nothing better", () => {
    expect(inviteLink(address, local, null)).toBe("http://localhost:7373/?job=3f9a12bc#AbCdEfGhIjKlMnOpQrSt_-");
  });

  test("keeps the address under which the page was reached from elsewhere", () => {
    const page = { origin: "https://ringlet.example", hostname: "ringlet.example", pathname: "/train/" };
    expect(inviteLink(address, page, "https://192.168.1.20:7374")).toBe(
      "https://ringlet.example/train/?job=3f9a12bc#AbCdEfGhIjKlMnOpQrSt_-",
    );
  });
});

test("loopback names are those by which a machine calls only itself", () => {
  expect(["localhost", "app.localhost", "127.0.0.1", "127.1.2.3", "[::1]"].filter(isLoopback)).toHaveLength(5);
  expect(["192.168.1.20", "localhost.example", "10.127.0.1", "[fe80::1]"].filter(isLoopback)).toEqual([]);
});
