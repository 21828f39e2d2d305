import { describe, expect, test } from "vitest";
import { addressBytes, hostNames, networkAddresses, urlHost } from "./addresses";

describe("the addresses for other machines", () => {
  test("leave out loopback and link-local ones and put the likeliest first", () => {
    const at = (address: string, internal = false) => ({ address, internal });
    expect(
      networkAddresses({
        lo: [at("127.0.0.1", true), at("::1", true)],
        docker0: [at("172.17.0.1")],
        eth0: [at("fd00::2"), at("fe80::1"), at("192.168.1.5")],
        wlan0: [at("10.0.0.7"), at("169.254.3.4")],
        gone: undefined,
      }),
    ).toEqual(["192.168.1.5", "10.0.0.7", "fd00::2", "172.17.0.1"]);
  });

  test("stand in brackets in a URL when they are IPv6", () => {
    expect([urlHost("fd00::2"), urlHost("10.0.0.7"), urlHost("desk.local")]).toEqual([
      "[fd00::2]",
      "10.0.0.7",
      "desk.local",
    ]);
  });
});

test("a machine is known by its name, and by multicast DNS when the name has no domain", () => {
  expect(hostNames("desk")).toEqual(["desk", "desk.local"]);
  expect(hostNames("desk.example.org")).toEqual(["desk.example.org"]);
  expect(hostNames("localhost")).toEqual([]);
});

test.each([
  ["192.0.2.1", [192, 0, 2, 1]],
  ["::ffff:192.0.2.1", [192, 0, 2, 1]],
  ["::1", [...new Array(15).fill(0), 1]],
  ["::", new Array(16).fill(0)],
  [
    "2001:db8:1234:5678:11:2233:4455:6677",
    [0x20, 0x01, 0x0d, 0xb8, 0x12, 0x34, 0x56, 0x78, 0, 0x11, 0x22, 0x33, 0x44, 0x55, 0x66, 0x77],
  ],
  ["fe80::1%eth0", [0xfe, 0x80, ...new Array(13).fill(0), 1]],
  ["2001:db8::192.0.2.33", [0x20, 0x01, 0x0d, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 192, 0, 2, 33]],
])("the bytes of %s", (address, bytes) => {
  expect([...(addressBytes(address) ?? [])]).toEqual(bytes);
});

test("what is no address has no bytes", () => {
  expect(addressBytes("desk.local")).toBeNull();
});
