import type { Clock } from "../base/clock";
import { deferred } from "../base/deferred";
import { ChannelLink } from "./channelLink";
import { type Fingerprints, Handshake, type HandshakeOptions, type ProvenPeer, type RefusalCode } from "./handshake";
import type { Pipe } from "./pipe";

/** "unreachable" when the connection itself didn't come about, "absent" when nobody runs the job any more. */
export type LinkErrorCode = RefusalCode | "unreachable" | "absent";

/** Why there is no link. */
export class LinkError extends Error {
  override readonly name = "LinkError";
  readonly code: LinkErrorCode;
  constructor(code: LinkErrorCode, sentence: string) {
    super(sentence);
    this.code = code;
  }
}

/** What the two descriptions of a connection say. */
export interface ConnectionFacts {
  readonly fingerprints: Fingerprints;
  /** The largest message that the peer takes, in bytes. */
  readonly maxMessageBytes: number;
}

export interface ProveLinkOptions extends Omit<HandshakeOptions, "fingerprints"> {
  readonly pipe: Pipe;
  /** Asked once the pipe is open. */
  readonly facts: () => Promise<ConnectionFacts>;
  readonly clock: Clock;
}

/** Until the pipe opens, and from then to the peer's verdict. */
const openingMilliseconds = 15_000;
const proofMilliseconds = 10_000;

/** Before this side is satisfied a peer may send its hello, proof and verdict; after that also frames, within bounds. */
const unprovenMessages = 4;
const provenMessages = 4096;

/**
 * Waits for the pipe to open and makes it a link once both sides are proven. Must be called in the task in which the pipe was made.
 * @throws LinkError, the pipe being closed then.
 */
export async function proveLink(options: ProveLinkOptions): Promise<{ link: ChannelLink; peer: ProvenPeer }> {
  const { pipe, clock } = options;
  const opened = deferred<void>();
  const failed = deferred<never>();
  failed.promise.catch(() => {});
  const messages: ArrayBuffer[] = [];
  let wake: (() => void) | null = null;
  let handshake: Handshake | null = null;
  pipe.onOpen = () => opened.resolve();
  pipe.onMessage = (message) => {
    messages.push(message);
    if (messages.length > (handshake?.satisfied ? provenMessages : unprovenMessages))
      failed.reject(new LinkError("malformed", "A peer sent more than its proof before it was proven."));
    wake?.();
  };
  pipe.onClose = (reason) => {
    // What came before the end may be a refusal, which says more.
    wake?.();
    if (messages.length === 0 || handshake === null)
      failed.reject(new LinkError("unreachable", `A peer was lost before it was proven. ${reason}`));
  };
  if (pipe.state === "open") opened.resolve();
  let timer = clock.setTimeout(
    () =>
      failed.reject(new LinkError("unreachable", `No connection came about within ${openingMilliseconds / 1000} s.`)),
    openingMilliseconds,
  );

  try {
    await Promise.race([opened.promise, failed.promise]);
    clock.clearTimeout(timer);
    const { fingerprints, maxMessageBytes } = await Promise.race([options.facts(), failed.promise]);
    const current = new Handshake({ ...options, fingerprints });
    handshake = current;
    timer = clock.setTimeout(() => {
      const step = current.expire(proofMilliseconds);
      if (step.kind !== "refused") return;
      for (const message of step.send) pipe.send(message);
      failed.reject(new LinkError(step.code, step.sentence));
    }, proofMilliseconds);
    pipe.send(current.hello());
    for (;;) {
      const message = messages.shift();
      if (message === undefined) {
        if (pipe.state === "closed")
          throw new LinkError("unreachable", "A peer was lost before it was proven. Its connection closed.");
        const arrival = new Promise<void>((resolve) => {
          wake = resolve;
        });
        await Promise.race([arrival, failed.promise]);
        continue;
      }
      const step = await Promise.race([current.receive(new Uint8Array(message)), failed.promise]);
      if (step.kind === "proven") {
        const received = messages.splice(0);
        const link = new ChannelLink({ pipe, peer: step.peer.member, maxMessageBytes, clock, received });
        return { link, peer: step.peer };
      }
      for (const reply of step.send) pipe.send(reply);
      if (step.kind === "refused") throw new LinkError(step.code, step.sentence);
    }
  } catch (error) {
    pipe.onMessage = null;
    pipe.onClose = null;
    pipe.close();
    throw error;
  } finally {
    clock.clearTimeout(timer);
  }
}
