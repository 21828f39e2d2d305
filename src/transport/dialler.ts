import type { Clock, TimerHandle } from "../base/clock";
import { type Deferred, deferred } from "../base/deferred";
import { messageOf } from "../base/messageOf";
import type { ChannelLink } from "./channelLink";
import type { Connector, OpenedConnection } from "./connector";
import type { Role } from "./handshake";
import type { Frame, Link, MemberId } from "./link";
import { shortId } from "./memberId";
import { LinkError } from "./proveLink";
import { decodeSignal, encodeSignal, type Signal } from "./signal";

const dialMilliseconds = 15_000;

export interface DiallerOptions {
  readonly self: MemberId;
  readonly connector: Connector;
  readonly clock: Clock;
  readonly links: ReadonlyMap<MemberId, ChannelLink>;
  /** Proves both sides over a new connection, and makes it a link. */
  establish(connection: OpenedConnection, role: Role, expectedPeer: MemberId): Promise<Link>;
  /** Gets the failures of what others dialled. */
  report(error: Error): void;
}

/** One try at a connection. */
interface Leg {
  readonly role: Role;
  /** The dialling side's number for it. */
  readonly number: number;
  readonly via: MemberId;
  connection: number | null;
}

/** What leads to a link with a peer; its leg is replaced when the peer's dial takes precedence. */
interface Attempt {
  readonly peer: MemberId;
  readonly result: Deferred<Link>;
  readonly timer: TimerHandle;
  leg: Leg;
}

/**
 * Makes links to members that this one can reach through another: offers and answers travel over proven links, in signal frames, so
 * that no server is needed. Also relays such signals for others.
 */
export class Dialler {
  readonly #options: DiallerOptions;
  readonly #attempts = new Map<MemberId, Attempt>();
  #nextNumber = 1;

  constructor(options: DiallerOptions) {
    this.#options = options;
  }

  dial(peer: MemberId, via: MemberId): Promise<Link> {
    const { self, links, connector } = this.#options;
    const link = links.get(peer);
    if (link !== undefined) return Promise.resolve(link);
    const current = this.#attempts.get(peer);
    if (current !== undefined) return current.result.promise;
    if (peer === self) return Promise.reject(new Error("A member can't dial itself."));
    if (!links.has(via))
      return Promise.reject(new LinkError("unreachable", `${unreachable(peer, via)}: there is no link to the latter.`));
    const number = this.#nextNumber++;
    const attempt = this.#attempt(peer, { role: "dialer", number, via, connection: null });
    this.#run(attempt, async (connection) => {
      const text = await connector.offer(connection);
      this.#send(via, { to: peer, from: self, kind: "offer", attempt: number, text });
    });
    return attempt.result.promise;
  }

  /** Takes in a signal frame. */
  take(link: ChannelLink, frame: Frame): void {
    const signal = decodeSignal(frame.payload);
    if (typeof signal === "string") {
      link.close(`Member ${shortId(link.peer)} was dropped. ${signal}`);
      return;
    }
    if (signal.to !== this.#options.self) {
      this.#relay(link, signal);
      return;
    }
    switch (signal.kind) {
      case "offer":
        this.#takeOffer(link.peer, signal);
        return;
      case "answer":
        this.#takeAnswer(signal);
        return;
      case "refusal": {
        const attempt = this.#attempts.get(signal.from);
        if (attempt !== undefined && isOwn(attempt.leg, signal)) this.#fail(attempt, attempt.leg, signal.text);
      }
    }
  }

  /** Ends all attempts. */
  abort(reason: string): void {
    for (const attempt of [...this.#attempts.values()]) attempt.result.reject(new LinkError("unreachable", reason));
  }

  /** Passes a signal on. A member may only speak for itself. */
  #relay(link: ChannelLink, signal: Signal): void {
    if (signal.from !== link.peer) {
      link.close(
        `Member ${shortId(link.peer)} was dropped. It signalled in the name of member ${shortId(signal.from)}.`,
      );
      return;
    }
    if (this.#options.links.has(signal.to)) this.#send(signal.to, signal);
    else if (signal.kind === "offer")
      this.#send(link.peer, {
        to: signal.from,
        from: signal.to,
        kind: "refusal",
        attempt: signal.attempt,
        text: "the latter has no link to the former.",
      });
  }

  #takeOffer(via: MemberId, signal: Signal): void {
    const { self, connector, report } = this.#options;
    const peer = signal.from;
    const leg: Leg = { role: "acceptor", number: signal.attempt, via, connection: null };
    let attempt = this.#attempts.get(peer);
    if (attempt === undefined) {
      attempt = this.#attempt(peer, leg);
      attempt.result.promise.catch(report);
    } else {
      // Both dial at once: the lower id's dial stands, and the other's result is that same link.
      if (attempt.leg.role === "dialer" && self < peer) return;
      const { connection } = attempt.leg;
      attempt.leg = leg;
      if (connection !== null) connector.close(connection);
    }
    this.#run(attempt, async (connection) => {
      const text = await connector.answer(connection, signal.text);
      this.#send(via, { to: peer, from: self, kind: "answer", attempt: signal.attempt, text });
    });
  }

  #takeAnswer(signal: Signal): void {
    const attempt = this.#attempts.get(signal.from);
    if (attempt === undefined || !isOwn(attempt.leg, signal)) return;
    const { leg } = attempt;
    if (leg.connection === null) return;
    this.#options.connector
      .accept(leg.connection, signal.text)
      .catch((error: unknown) => this.#fail(attempt, leg, messageOf(error)));
  }

  #attempt(peer: MemberId, leg: Leg): Attempt {
    const { clock, connector } = this.#options;
    const attempt: Attempt = {
      peer,
      result: deferred<Link>(),
      timer: clock.setTimeout(
        () => this.#fail(attempt, attempt.leg, `no connection came about within ${dialMilliseconds / 1000} s.`),
        dialMilliseconds,
      ),
      leg,
    };
    this.#attempts.set(peer, attempt);
    const over = () => {
      clock.clearTimeout(attempt.timer);
      this.#attempts.delete(peer);
    };
    attempt.result.promise.then(over, () => {
      over();
      if (attempt.leg.connection !== null) connector.close(attempt.leg.connection);
    });
    return attempt;
  }

  /** Opens the connection of the attempt's leg, and runs it to its link or its failure. */
  async #run(attempt: Attempt, negotiate: (connection: number) => Promise<void>): Promise<void> {
    const { connector, establish } = this.#options;
    const { leg, peer, result } = attempt;
    try {
      const opened = await connector.open();
      leg.connection = opened.id;
      const established = establish(opened, leg.role, peer);
      established.then(result.resolve, (error: unknown) => {
        if (attempt.leg === leg) result.reject(error instanceof Error ? error : new Error(String(error)));
      });
      await negotiate(opened.id);
    } catch (error) {
      this.#fail(attempt, leg, messageOf(error));
    }
  }

  /** Failures of a leg that was replaced don't count. */
  #fail(attempt: Attempt, leg: Leg, why: string): void {
    if (attempt.leg !== leg) return;
    const { peer, result } = attempt;
    if (leg.role === "acceptor")
      this.#send(leg.via, { to: peer, from: this.#options.self, kind: "refusal", attempt: leg.number, text: why });
    result.reject(new LinkError("unreachable", `${unreachable(peer, leg.via)}: ${why}`));
  }

  #send(through: MemberId, signal: Signal): void {
    const header = { kind: "signal", epoch: 0, step: 0, channel: 0, offset: 0 } as const;
    this.#options.links.get(through)?.send(header, encodeSignal(signal));
  }
}

function isOwn(leg: Leg, signal: Signal): boolean {
  return leg.role === "dialer" && leg.number === signal.attempt;
}

function unreachable(peer: MemberId, via: MemberId): string {
  return `Member ${shortId(peer)} can't be reached through member ${shortId(via)}`;
}
