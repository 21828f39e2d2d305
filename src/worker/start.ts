import { type Remote, releaseProxy, wrap } from "comlink";
import { BrowserConnector } from "../transport/browserConnector";
import { exposeConnector } from "../transport/connectorPort";
import { signalingAt } from "../transport/rendezvous";
import type { RingletWorker } from "./api";
import { fetchServerInfo } from "./serverInfo";

export interface WorkerSettings {
  /** STUN and TURN servers that the person set in the page, besides the server's own. */
  readonly iceServers: readonly RTCIceServer[];
  /** Gets a sentence when the worker itself fails, after which no call to it is answered any more. */
  readonly onFailure: (sentence: string) => void;
}

export interface StartedWorker {
  readonly worker: Remote<RingletWorker>;
  /** Ends the worker with all that it holds. */
  terminate(): void;
}

/**
 * Starts the tab's training worker and serves it the connections that only a page's main thread can make.
 * What is called before the server has said where its signaling is waits for that.
 */
export function startWorker(settings: WorkerSettings): StartedWorker {
  const worker = new Worker(new URL("./worker.ts", import.meta.url), { type: "module", name: "ringlet" });
  worker.addEventListener("error", (event) => {
    settings.onFailure(
      `This tab's training worker failed: ${event.message || "it could not be loaded"}. Reload the page.`,
    );
  });
  const { port1, port2 } = new MessageChannel();
  worker.postMessage({ connector: port2 }, [port2]);
  void serveConnector(port1, settings);
  const remote = wrap<RingletWorker>(worker);
  return {
    worker: remote,
    terminate() {
      remote[releaseProxy]();
      port1.close();
      worker.terminate();
    },
  };
}

async function serveConnector(port: MessagePort, settings: WorkerSettings): Promise<void> {
  // Without an answer the worker's first call to the signaling server fails, and its sentence reaches the person.
  const info = await fetchServerInfo().catch(() => ({ signalingPath: "/signal", iceServers: [] }));
  const connector = new BrowserConnector({
    signaling: signalingAt(info.signalingPath, location),
    iceServers: [...info.iceServers, ...settings.iceServers],
    forWorker: true,
  });
  exposeConnector(connector, port);
}
