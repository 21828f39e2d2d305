import { createHash, X509Certificate } from "node:crypto";
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { connect as connectTcp, createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { connect as connectTls } from "node:tls";
import { gunzipSync } from "node:zlib";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import { parseIdx } from "../data/idx";
import { readMnistManifest } from "../data/mnistFiles";
import { networkAddresses } from "./addresses";
import { ServerError } from "./errors";
import { prepareMnist } from "./mnistAssets";
import { type RunningServer, type ServerOptions, startServer } from "./server";
import { rawRequest, SocketClient, signIn } from "./testing/client";

let folder: string;
const warnings: string[] = [];
const running: RunningServer[] = [];
const start = async (options: ServerOptions = {}) => {
  const server = await startServer({
    port: 0,
    httpsPort: 0,
    stunPort: 0,
    source: { kind: "built", folder: join(folder, "page") },
    cacheFolder: join(folder, "cache"),
    warn: (sentence) => warnings.push(sentence),
    ...options,
  });
  running.push(server);
  return server;
};

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "ringlet-server-"));
  await mkdir(join(folder, "page", "assets"), { recursive: true });
  await writeFile(join(folder, "page", "index.html"), "<title>built</title>");
  await writeFile(join(folder, "page", "assets", "main-abc.js"), "export {};");
  await writeFile(join(folder, "secret.txt"), "secret");
  await prepareMnist(join(folder, "cache"));
}, 120_000);
afterEach(async () => {
  for (const server of running.splice(0)) await server.close();
});
afterAll(() => rm(folder, { recursive: true }));

describe("pages", () => {
  test("are served isolated and unframed, with what has a hash in its name kept for good", async () => {
    const { localUrl } = await start();
    const page = await fetch(localUrl);
    expect(await page.text()).toBe("<title>built</title>");
    expect(page.headers.get("cross-origin-opener-policy")).toBe("same-origin");
    expect(page.headers.get("cross-origin-embedder-policy")).toBe("require-corp");
    expect(page.headers.get("x-content-type-options")).toBe("nosniff");
    expect(page.headers.get("content-security-policy")).toContain("frame-ancestors 'none'");
    expect(page.headers.get("cache-control")).toBe("no-cache");
    const script = await fetch(`${localUrl}assets/main-abc.js`);
    expect(script.headers.get("cache-control")).toContain("immutable");
    expect(script.headers.get("content-type")).toContain("javascript");
  });

  test.each([
    "/../secret.txt",
    "/%2e%2e/secret.txt",
    "/..%2fsecret.txt",
    "/assets/../../secret.txt",
    "//secret.txt",
    "/%",
  ])("%s leads out of the folder nowhere", async (path) => {
    const { localUrl } = await start();
    const answer = await rawRequest(localUrl, path);
    expect(answer.status).toBe(404);
    expect(answer.body.toString()).not.toContain("secret\n");
  });

  test("that aren't there are said not to be, and can't be written", async () => {
    const { localUrl } = await start();
    const missing = await fetch(`${localUrl}nowhere`);
    expect([missing.status, await missing.text()]).toEqual([404, "There is nothing at /nowhere."]);
    expect((await fetch(localUrl, { method: "POST" })).status).toBe(405);
  });

  test("may be added, under the same headers", async () => {
    const { localUrl } = await start({ pages: { "/run/script.js": { type: "text/javascript", body: "1 + 1" } } });
    const script = await fetch(`${localUrl}run/script.js?x`);
    expect(await script.text()).toBe("1 + 1");
    expect(script.headers.get("content-type")).toBe("text/javascript; charset=utf-8");
    expect(script.headers.get("cross-origin-embedder-policy")).toBe("require-corp");
  });

  test("that aren't built are one sentence", async () => {
    const missing = start({ source: { kind: "built", folder: join(folder, "cache") } });
    await expect(missing).rejects.toThrow("run `npm run build` first");
  });
});

describe("what a page asks for", () => {
  test("names signaling, STUN, the user's ICE servers and the origin to share", async () => {
    const turn = { urls: ["turn:turn.example"], username: "u", credential: "c" };
    const server = await start({ iceServers: [turn] });
    const [first] = networkAddresses();
    const info = await (await fetch(`${server.localUrl}ringlet.json`)).json();
    expect(info).toMatchObject({
      version: expect.stringMatching(/^\d+\.\d+\.\d+/),
      signalingPath: "/signal",
      stunPort: server.stunPort,
      shareOrigin: first === undefined ? null : new URL(server.networkUrls[0]!).origin,
    });
    expect(info.iceServers[0].urls[0]).toBe(`stun:${first ?? "127.0.0.1"}:${server.stunPort}`);
    expect(info.iceServers[1]).toEqual(turn);
  });

  test("without other machines shares nothing, and STUN answers here only", async () => {
    const server = await start({ httpsPort: null });
    const info = await (await fetch(`${server.localUrl}ringlet.json`)).json();
    expect([server.httpsPort, server.networkUrls, info.shareOrigin]).toEqual([null, [], null]);
    expect(info.iceServers).toEqual([{ urls: [`stun:127.0.0.1:${server.stunPort}`] }]);
  });

  test("the data set is MNIST, compressed, with its lengths and hashes", async () => {
    const { localUrl } = await start();
    const manifest = readMnistManifest(await (await fetch(`${localUrl}data/mnist/manifest.json`)).json());
    const response = await fetch(`${localUrl}data/mnist/${manifest.validationLabels.name}`);
    expect(response.headers.get("content-encoding")).toBeNull();
    const compressed = Buffer.from(await response.arrayBuffer());
    expect(compressed.length).toBe(manifest.validationLabels.bytes);
    expect(createHash("sha256").update(compressed).digest("hex")).toBe(manifest.validationLabels.sha256);
    const labels = parseIdx(Uint8Array.from(gunzipSync(compressed)), [10_000], "labels").data;
    expect([...labels.subarray(0, 10)]).toEqual([7, 2, 1, 0, 4, 1, 4, 9, 5, 9]);
    expect((await fetch(`${localUrl}data/mnist/other.gz`)).status).toBe(404);
    expect((await rawRequest(localUrl, "/data/mnist/../certificate.pem")).status).toBe(404);
  });
});

describe("who can reach it", () => {
  test.each(networkAddresses().slice(0, 1))("HTTP is closed at %s, where HTTPS serves", async (address) => {
    const server = await start();
    const refused = await new Promise<string | undefined>((resolve) => {
      connectTcp(server.port, address)
        .on("connect", () => resolve("connected"))
        .on("error", (error: NodeJS.ErrnoException) => resolve(error.code));
    });
    expect(refused).toBe("ECONNREFUSED");
    const answer = await rawRequest(`https://${address}:${server.httpsPort}`, "/");
    expect(answer.body.toString()).toBe("<title>built</title>");
  });

  test("HTTPS has a certificate with this machine's addresses, the same after a restart", async () => {
    const fingerprints: string[] = [];
    for (let round = 0; round < 2; round++) {
      const server = await start();
      const certificate = await new Promise<X509Certificate>((resolve, reject) => {
        const socket = connectTls({ port: server.httpsPort ?? 0, host: "127.0.0.1", rejectUnauthorized: false }, () => {
          resolve(new X509Certificate(socket.getPeerCertificate().raw));
          socket.destroy();
        }).on("error", reject);
      });
      for (const address of ["127.0.0.1", ...networkAddresses()]) expect(certificate.checkIP(address)).toBe(address);
      fingerprints.push(certificate.fingerprint256);
    }
    expect(fingerprints[1]).toBe(fingerprints[0]);
  });
});

describe("signaling", () => {
  test("carries an offer from a peer over HTTP to one over HTTPS", async () => {
    const server = await start();
    const alice = await signIn(server.localUrl, "alice");
    const bob = await signIn(`https://127.0.0.1:${server.httpsPort}`, "bob");
    alice.send({ type: "OFFER", dst: "bob", payload: "sdp" });
    expect(await bob.next()).toEqual({ type: "OFFER", src: "alice", dst: "bob", payload: "sdp" });
    alice.end();
    bob.end();
  });

  test("tells a peer that dials an absent one", async () => {
    const server = await start();
    const alice = await signIn(server.localUrl, "alice");
    alice.send({ type: "OFFER", dst: "nobody", payload: "sdp" });
    expect(await alice.next()).toEqual({ type: "EXPIRE", src: "nobody", dst: "alice" });
    alice.end();
  });

  test("refuses an id that is taken and gives it out again once it is free", async () => {
    const server = await start();
    const first = await signIn(server.localUrl, "claimed", "one");
    await expect(signIn(server.localUrl, "claimed", "two")).rejects.toThrow("ID-TAKEN");
    first.end();
    await expect.poll(() => signIn(server.localUrl, "claimed", "two").then((client) => client.end())).toBeUndefined();
  });

  test("survives garbage, and says so", async () => {
    const server = await start();
    const alice = await signIn(server.localUrl, "alice");
    alice.sendText("not JSON");
    alice.sendText("null");
    alice.send({ type: "OFFER", dst: "alice", payload: "still here" });
    expect(await alice.next()).toMatchObject({ payload: "still here" });
    expect(warnings.filter((sentence) => sentence.startsWith("Signaling dropped a message"))).toHaveLength(2);
    alice.end();
  });

  test("leaves every other web socket to others", async () => {
    const server = await start();
    await expect(SocketClient.open(server.localUrl, "/elsewhere")).rejects.toThrow("refused with 404");
    await expect(SocketClient.open(server.localUrl, "/", { "sec-websocket-protocol": "vite-hmr" })).rejects.toThrow(
      "refused with 404",
    );
  });
});

describe("in development", () => {
  test("hot reload's web socket and signaling's work side by side, over HTTP and HTTPS", async () => {
    const root = join(folder, "sources");
    await mkdir(root);
    await writeFile(join(root, "package.json"), `{"type": "module"}`);
    await writeFile(join(root, "vite.config.ts"), "export default {};");
    await writeFile(join(root, "index.html"), "<title>first</title>");
    const server = await start({ source: { kind: "development", root } });
    const client = await (await fetch(`${server.localUrl}@vite/client`)).text();
    const [, token = ""] = /wsToken = "([^"]+)"/.exec(client) ?? [];

    const origins = [new URL(server.localUrl).origin, `https://127.0.0.1:${server.httpsPort}`];
    const reloads = await Promise.all(
      origins.map((origin) =>
        SocketClient.open(origin, `/?token=${token}`, { "sec-websocket-protocol": "vite-hmr", origin }),
      ),
    );
    const [alice, bob] = await Promise.all(origins.map((origin, index) => signIn(origin, `peer${index}`)));
    for (const reload of reloads) expect(await reload.next()).toEqual({ type: "connected" });
    expect((await rawRequest(server.localUrl, "/")).body.toString()).toContain("<title>first</title>");
    await writeFile(join(root, "index.html"), "<title>second</title>");
    for (const reload of reloads) expect(await reload.next()).toMatchObject({ type: "full-reload" });
    alice?.send({ type: "OFFER", dst: "peer1", payload: "sdp" });
    expect(await bob?.next()).toEqual({ type: "OFFER", src: "peer0", dst: "peer1", payload: "sdp" });

    await server.close();
    await Promise.all([...reloads, alice, bob].map((socket) => socket?.closed()));
  });

  test("only a clone has the sources", async () => {
    const elsewhere = start({ source: { kind: "development", root: join(folder, "cache") } });
    await expect(elsewhere).rejects.toThrow("only there in a clone");
  });
});

describe("its end and its failures", () => {
  test("closing cuts off web sockets and frees every port", async () => {
    const server = await start();
    const peer = await signIn(server.localUrl, "alice");
    await server.close();
    await peer.closed();
    const { port, httpsPort, stunPort } = server;
    const again = await start({ port, httpsPort, stunPort });
    expect([again.port, again.httpsPort, again.stunPort]).toEqual([port, httpsPort, stunPort]);
  });

  test.each([
    ["port", "--port"],
    ["httpsPort", "--https-port"],
    ["stunPort", "--stun-port"],
  ] as const)("a taken %s is one sentence, and leaves nothing open", async (key, option) => {
    const first = await start();
    const { port, httpsPort, stunPort } = first;
    const taken = { port: 0, httpsPort: 0, stunPort: 0, [key]: first[key] ?? 0 };
    const failed = start(taken);
    await expect(failed).rejects.toThrow(ServerError);
    await expect(failed).rejects.toThrow(new RegExp(`^Port ${first[key]} is already in use at .*${option}\\.$`));
    await first.close();
    const again = await start({ port, httpsPort, stunPort });
    expect(again.port).toBe(port);
  });

  test("a port that something else has at ::1 only is taken, since localhost may lead there", async () => {
    const other = createServer();
    const hasIPv6 = await new Promise<boolean>((resolve) => {
      other.once("error", () => resolve(false)).listen(0, "::1", () => resolve(true));
    });
    const address = other.address();
    const port = typeof address === "object" && address !== null ? address.port : 0;
    // Without IPv6 nothing can be there, and nothing stands in the way.
    if (hasIPv6) await expect(start({ port })).rejects.toThrow(`Port ${port} is already in use at ::1`);
    else expect((await start()).port).toBeGreaterThan(0);
    await new Promise((done) => other.close(done));
  });

  test("an address that isn't this machine's is one sentence", async () => {
    await expect(start({ host: "203.0.113.7" })).rejects.toThrow(
      "This machine has no address 203.0.113.7 to serve at: choose one of its own with --host.",
    );
  });
});
