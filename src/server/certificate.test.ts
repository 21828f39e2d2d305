import { X509Certificate } from "node:crypto";
import { mkdtemp, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { obtainCertificate } from "./certificate";

let folder: string;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "ringlet-certificate-"));
});
afterEach(() => rm(folder, { recursive: true }));

const names = ["localhost", "127.0.0.1", "::1", "desk.local", "192.168.1.5", "fd00::2"];
const day = 24 * 60 * 60 * 1000;

test("names every host name and address and is kept, readable by its owner only", async () => {
  const made = await obtainCertificate(folder, names);
  expect(new X509Certificate(made).subjectAltName).toBe(
    "DNS:localhost, IP Address:127.0.0.1, IP Address:0:0:0:0:0:0:0:1, DNS:desk.local, IP Address:192.168.1.5, IP Address:FD00:0:0:0:0:0:0:2",
  );
  expect((await stat(join(folder, "certificate.pem"))).mode & 0o777).toBe(0o600);
  expect(await obtainCertificate(folder, names)).toBe(made);
  expect(await obtainCertificate(folder, ["localhost"])).toBe(made);
});

test("is renewed when this machine has a new address", async () => {
  const made = await obtainCertificate(folder, names);
  const renewed = await obtainCertificate(folder, [...names, "10.0.0.9"]);
  expect(renewed).not.toBe(made);
  expect(new X509Certificate(renewed).checkIP("10.0.0.9")).toBe("10.0.0.9");
});

test("is renewed a week before it expires", async () => {
  const made = await obtainCertificate(folder, names);
  const end = Date.parse(new X509Certificate(made).validTo);
  expect(await obtainCertificate(folder, names, end - 8 * day)).toBe(made);
  expect(await obtainCertificate(folder, names, end - 6 * day)).not.toBe(made);
});

test("is made anew when the kept one is damaged", async () => {
  const made = await obtainCertificate(folder, names);
  await writeFile(join(folder, "certificate.pem"), made.slice(0, made.length / 2));
  const renewed = await obtainCertificate(folder, names);
  expect(new X509Certificate(renewed).checkHost("desk.local")).toBe("desk.local");
});
