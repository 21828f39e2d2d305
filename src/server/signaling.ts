import { createServer, type IncomingMessage } from "node:http";
import type { Duplex } from "node:stream";
import { ExpressPeerServer } from "peer";
import { HeldTimers } from "./heldTimers";
import { type Handler, pathOf } from "./http";

/** What peers give to PeerJS as `path`. */
export const signalingPath = "/signal";
/** PeerJS's clients append this to the path for their web socket. */
const socketPath = `${signalingPath}/peerjs`;

/** An offer to a peer that isn't there is answered with EXPIRE after this and half a second at most. */
const expireMilliseconds = 1500;
const expireCheckMilliseconds = 500;
/** Tabs send a heartbeat every 5 seconds, but browsers let a hidden tab's timers run only once a minute. */
const aliveMilliseconds = 65_000;

/** One PeerServer for all the origins that Ringlet serves at: whoever comes over HTTP meets whoever comes over HTTPS. */
export interface Signaling {
  readonly handler: Handler;
  /** Takes a web socket's upgrade when it is for signaling. */
  upgrade(request: IncomingMessage, socket: Duplex, head: Buffer): boolean;
  close(): void;
}

/** @param warn gets a sentence when a peer sends what isn't a message of PeerJS's. */
export function startSignaling(warn: (sentence: string) => void): Signaling {
  // PeerServer takes every upgrade of the server it is given, and answers 400 to those that aren't its own, such as
  // Vite's. So it is given a server that never listens, and gets from it what is its own.
  const hub = createServer();
  const peerServer = ExpressPeerServer(hub, {
    path: "/",
    expire_timeout: expireMilliseconds,
    cleanup_out_msgs: expireCheckMilliseconds,
    alive_timeout: aliveMilliseconds,
  });
  peerServer.on("error", (error) => warn(`Signaling dropped a message that isn't PeerJS's: ${error.message}.`));
  // It starts when it is mounted on an Express application, of which another one of its own serves as well as any.
  const application = ExpressPeerServer(hub);
  application.disable("x-powered-by");
  const timers = new HeldTimers();
  timers.run(() => application.use(signalingPath, peerServer));

  return {
    handler(request, response, next) {
      const path = pathOf(request);
      if (path === signalingPath || path.startsWith(`${signalingPath}/`)) application(request, response);
      else next();
    },
    upgrade(request, socket, head) {
      if (pathOf(request) !== socketPath) return false;
      hub.emit("upgrade", request, socket, head);
      return true;
    },
    close: () => timers.stop(),
  };
}
