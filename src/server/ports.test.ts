import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { deferred } from "../base/deferred";
import { type Application, openPorts } from "./ports";
import { rawRequest, SocketClient } from "./testing/client";

const onLoopback = { port: 0, httpsPort: null, stunPort: 0, host: undefined, cacheFolder: tmpdir() };

test("requests that come before the application wait for it", async () => {
  const application = deferred<Application>();
  const ports = await openPorts(onLoopback, application.promise);
  const answer = rawRequest(`http://127.0.0.1:${ports.http}`, "/early");
  application.resolve({ handle: (request, response) => response.end(`got ${request.url}`), upgrade: () => {} });
  expect((await answer).body.toString()).toBe("got /early");
  await ports.close();
});

test("an application that fails fails for one request only", async () => {
  const ports = await openPorts(
    onLoopback,
    Promise.resolve({
      handle(request, response) {
        if (request.url === "/broken") throw new Error("it broke");
        response.end("fine");
      },
      upgrade() {
        throw new Error("it broke");
      },
    }),
  );
  const origin = `http://127.0.0.1:${ports.http}`;
  const broken = await rawRequest(origin, "/broken");
  expect([broken.status, broken.body.toString()]).toEqual([500, "The server failed: it broke."]);
  await expect(SocketClient.open(origin, "/socket")).rejects.toThrow();
  expect((await rawRequest(origin, "/")).body.toString()).toBe("fine");
  await ports.close();
});

test("HTTPS for other machines can be at one address only", async () => {
  const cacheFolder = await mkdtemp(join(tmpdir(), "ringlet-ports-"));
  const application: Application = { handle: (_, response) => response.end("fine"), upgrade: () => {} };
  const ports = await openPorts(
    { ...onLoopback, httpsPort: 0, host: "127.0.0.1", cacheFolder },
    Promise.resolve(application),
  );
  expect(ports.addresses).toEqual(["127.0.0.1"]);
  expect((await rawRequest(`https://127.0.0.1:${ports.https}`, "/")).body.toString()).toBe("fine");
  await expect(rawRequest(`https://[::1]:${ports.https}`, "/")).rejects.toThrow("ECONNREFUSED");
  await ports.close();
  await rm(cacheFolder, { recursive: true });
});
