import { createServer as createHttpServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import { createServer as createHttpsServer } from "node:https";
import type { Socket } from "node:net";
import type { Duplex } from "node:stream";
import { networkAddresses } from "./addresses";
import { certificateNames, obtainCertificate } from "./certificate";
import { sendText } from "./http";
import { type Bound, bindEach, listen } from "./listen";
import { startStun } from "./stun";

/** What the web servers pass on. */
export interface Application {
  handle(request: IncomingMessage, response: ServerResponse): void;
  upgrade(request: IncomingMessage, socket: Duplex, head: Buffer): void;
}

export interface PortOptions {
  readonly port: number;
  /** Null for this machine only. */
  readonly httpsPort: number | null;
  readonly stunPort: number;
  /** Where HTTPS and STUN listen; everywhere when undefined. */
  readonly host: string | undefined;
  readonly cacheFolder: string;
}

export interface Ports {
  readonly http: number;
  readonly https: number | null;
  readonly stun: number;
  /** Where other machines reach HTTPS and STUN, likeliest first. */
  readonly addresses: readonly string[];
  close(): Promise<void>;
}

const loopback = ["127.0.0.1", "::1"];
const everywhere = ["0.0.0.0", "::"];

/**
 * Opens HTTP for this machine, and HTTPS and STUN for others. Requests wait for the application.
 *
 * @throws ServerError when a port is taken or an address can't be bound; nothing stays open then.
 */
export async function openPorts(options: PortOptions, application: Promise<Application>): Promise<Ports> {
  const { port, httpsPort, stunPort, host, cacheFolder } = options;
  const publicHosts = host === undefined ? everywhere : [host];
  const open: Bound[] = [];
  const close = async () => {
    await Promise.all(open.map((bound) => bound.close()));
  };
  const add = async (opening: Promise<Bound>) => {
    const bound = await opening;
    open.push(bound);
    return bound.port;
  };
  try {
    const http = await add(openWeb(loopback, port, "--port", createHttpServer, application));
    if (httpsPort === null) {
      const stun = await add(startStun(loopback, stunPort));
      return { http, https: null, stun, addresses: [], close };
    }
    const pem = await obtainCertificate(cacheFolder, [...certificateNames(), ...(host === undefined ? [] : [host])]);
    const createSecure = () => createHttpsServer({ key: pem, cert: pem });
    const https = await add(openWeb(publicHosts, httpsPort, "--https-port", createSecure, application));
    const stun = await add(startStun(publicHosts, stunPort));
    return { http, https, stun, addresses: host === undefined ? networkAddresses() : [host], close };
  } catch (error) {
    await close();
    throw error;
  }
}

/** A web server at each host, all on one port; closing one cuts off its connections, web sockets included. */
function openWeb(
  hosts: readonly string[],
  port: number,
  option: string,
  create: () => Server,
  application: Promise<Application>,
): Promise<Bound> {
  return bindEach(hosts, port, option, async (place) => {
    const server = create();
    server.on("request", (request: IncomingMessage, response: ServerResponse) => {
      application
        .then((ready) => ready.handle(request, response))
        .catch((error: unknown) => {
          if (response.headersSent) response.destroy();
          else sendText(response, 500, `The server failed: ${error instanceof Error ? error.message : error}.`);
        });
    });
    server.on("upgrade", (request: IncomingMessage, socket: Duplex, head: Buffer) => {
      socket.on("error", () => socket.destroy());
      application.then((ready) => ready.upgrade(request, socket, head)).catch(() => socket.destroy());
    });
    const sockets = new Set<Socket>();
    server.on("connection", (socket: Socket) => {
      sockets.add(socket);
      socket.once("close", () => sockets.delete(socket));
    });
    if (!(await listen(server, place))) return null;
    const address = server.address();
    return {
      port: typeof address === "object" && address !== null ? address.port : place.port,
      close: () =>
        new Promise<void>((done) => {
          server.close(() => done());
          for (const socket of sockets) socket.destroy();
        }),
    };
  });
}
