import type { IncomingMessage } from "node:http";
import { deferred } from "../base/deferred";
import { messageOf } from "../base/messageOf";
import { hostNames, urlHost } from "./addresses";
import { defaultCacheFolder } from "./cacheFolder";
import { type Handler, headerOf, inTurn, pathOf, readOnly, securityHeaders, send, sendJson } from "./http";
import type { IceServer } from "./iceServers";
import { prepareMnist, serveMnist } from "./mnistAssets";
import { packageVersion } from "./packageRoot";
import { builtPages, developmentPages, type Pages } from "./pages";
import { type Application, openPorts, type Ports } from "./ports";
import { signalingPath, startSignaling } from "./signaling";

export const defaultPorts = { http: 7373, https: 7374, stun: 7375 } as const;

/** A page or script served besides Ringlet's own. */
export interface ExtraPage {
  /** Its media type, such as `text/javascript`. */
  readonly type: string;
  readonly body: string;
}

export type PageSource =
  /** From `npm run build`. `folder` is dist/page when left out. */
  | { readonly kind: "built"; readonly folder?: string }
  /** From the sources, with hot reload. `root` is the folder of vite.config.ts, Ringlet's own when left out. */
  | { readonly kind: "development"; readonly root?: string };

export interface ServerOptions {
  /** HTTP for this machine only, at 127.0.0.1 and ::1; 0 lets the system choose. */
  readonly port?: number;
  /** HTTPS for other machines; 0 lets the system choose, and null serves this machine only. */
  readonly httpsPort?: number | null;
  /** STUN on UDP; for this machine only when there is no HTTPS. */
  readonly stunPort?: number;
  /** Where HTTPS and STUN listen; all of this machine's addresses when left out. */
  readonly host?: string;
  /** Ringlet's pages as they were built when left out. */
  readonly source?: PageSource;
  /** Pages by path, such as `/run/script.js`. They come before Ringlet's own. */
  readonly pages?: Readonly<Record<string, ExtraPage>>;
  /** STUN and TURN servers for the tabs, besides this server's own STUN. */
  readonly iceServers?: readonly IceServer[];
  /** Where the certificate and the compressed data set are kept. */
  readonly cacheFolder?: string;
  /** Gets a sentence for what the person at the terminal should know; stderr when left out. */
  readonly warn?: (sentence: string) => void;
}

export interface RunningServer {
  /** For browsers on this machine, such as `http://localhost:7373/`. */
  readonly localUrl: string;
  /** For browsers on other machines, likeliest first, such as `https://192.168.1.5:7374/`. */
  readonly networkUrls: readonly string[];
  /** PeerJS's `path`, at the same origin. */
  readonly signalingPath: string;
  readonly port: number;
  readonly httpsPort: number | null;
  readonly stunPort: number;
  /** Ends everything, open connections included; a second call awaits the first. */
  close(): Promise<void>;
}

/** `GET /ringlet.json`: what a page needs to know of its server. */
export interface ServerInfo {
  readonly version: string;
  readonly signalingPath: string;
  readonly stunPort: number;
  /** This server's STUN as the page reaches it, then what `RINGLET_ICE_SERVERS` names. */
  readonly iceServers: readonly IceServer[];
  /** The origin under which other machines find this server; null when they can't. */
  readonly shareOrigin: string | null;
}

/**
 * Starts Ringlet's server: pages, data set and signaling at one origin, over HTTP for this machine and HTTPS for
 * others, and STUN.
 *
 * @throws ServerError when a port is taken, an address can't be bound or the page isn't built; nothing stays open then.
 */
export async function startServer(options: ServerOptions = {}): Promise<RunningServer> {
  const {
    port = defaultPorts.http,
    httpsPort = defaultPorts.https,
    stunPort = defaultPorts.stun,
    host,
    cacheFolder = defaultCacheFolder(),
    warn = (sentence: string) => console.error(sentence),
  } = options;
  // The ports come first, so that a taken one is told before anything slow begins.
  const application = deferred<Application>();
  const ports = await openPorts({ port, httpsPort, stunPort, host, cacheFolder }, application.promise);
  const pages = await openPages(options.source ?? { kind: "built" }).catch(async (error: unknown) => {
    await ports.close();
    throw error;
  });
  const signaling = startSignaling(warn);
  const mnist = prepareMnist(cacheFolder);
  // Pages that ask for the data set get the same sentence.
  const prepared = mnist.then(
    () => {},
    (error: unknown) => warn(messageOf(error)),
  );

  const origins = ports.addresses.map((address) => `https://${urlHost(address)}:${ports.https}`);
  const info = (request: IncomingMessage): ServerInfo => ({
    version: packageVersion(),
    signalingPath,
    stunPort: ports.stun,
    iceServers: [stunServer(request, ports), ...(options.iceServers ?? [])],
    shareOrigin: origins[0] ?? null,
  });
  application.resolve({
    handle: inTurn([
      securityHeaders,
      signaling.handler,
      readOnly,
      (request, response, next) => (pathOf(request) === "/ringlet.json" ? sendJson(response, info(request)) : next()),
      serveMnist(mnist),
      serveExtra(options.pages ?? {}),
      pages.handler,
    ]),
    upgrade(request, socket, head) {
      if (signaling.upgrade(request, socket, head) || pages.upgrade(request, socket, head)) return;
      socket.end("HTTP/1.1 404 Not Found\r\nConnection: close\r\n\r\n");
    },
  });

  const end = async () => {
    await ports.close();
    signaling.close();
    await pages.close();
    await prepared;
  };
  let ended: Promise<void> | null = null;
  return {
    localUrl: `http://localhost:${ports.http}/`,
    networkUrls: origins.map((origin) => `${origin}/`),
    signalingPath,
    port: ports.http,
    httpsPort: ports.https,
    stunPort: ports.stun,
    close: () => {
      ended ??= end();
      return ended;
    },
  };
}

async function openPages(source: PageSource): Promise<Pages> {
  switch (source.kind) {
    case "built":
      return builtPages(source.folder);
    case "development":
      return developmentPages([...hostNames(), ".local"], source.root);
  }
}

/**
 * This server's STUN, at the address by which the page reached it. A page of this machine gets the addresses by which
 * others reach it: what STUN answers to those is of use to others.
 */
function stunServer(request: IncomingMessage, { addresses, stun }: Ports): IceServer {
  const asked = hostOf(headerOf(request.headers.host));
  const own = addresses.includes(asked) || hostNames().includes(asked) ? [asked] : addresses.slice(0, 2);
  return { urls: (own.length > 0 ? own : ["127.0.0.1"]).map((host) => `stun:${urlHost(host)}:${stun}`) };
}

/** The host in a Host header, without port or brackets. */
const hostOf = (header = "") => header.replace(/:\d+$/, "").replace(/^\[(.*)\]$/, "$1");

function serveExtra(pages: Readonly<Record<string, ExtraPage>>): Handler {
  const byPath = new Map(Object.entries(pages));
  return (request, response, next) => {
    const page = byPath.get(pathOf(request));
    if (page) send(response, 200, page.type.startsWith("text/") ? `${page.type}; charset=utf-8` : page.type, page.body);
    else next();
  };
}
