import { type Clock, realClock } from "../base/clock";
import { deferred } from "../base/deferred";
import { messageOf } from "../base/messageOf";
import type { ChannelLink } from "./channelLink";
import type { Connector, DataPath, OpenedConnection } from "./connector";
import { Dialler } from "./dialler";
import type { Role } from "./handshake";
import { deriveProofKeys, type Identity, type ProofKeys, rendezvousNames } from "./identity";
import type { Link, MemberId, Network } from "./link";
import { shortId } from "./memberId";
import { ChannelPipe, type Pipe, PortPipe } from "./pipe";
import { LinkError, proveLink } from "./proveLink";

/** How many rendezvous names a job has. */
const nameCount = 3;
/** A job that nobody runs must be known as such within 10 s. */
const contactMilliseconds = 9000;
/**
 * A name that nobody has may be on its way: a member that just joined, or whose server came back, is about to claim it.
 * So one that finds nobody asks again, at such intervals, until so long after it began.
 */
const absence = { retryMilliseconds: 1000, certainMilliseconds: 5000 };
/** Strangers that may be in the middle of their proof at once. */
const maxVisitors = 16;

export interface WebRtcNetworkOptions {
  readonly connector: Connector;
  readonly identity: Identity;
  /** 16 bytes, from the link. */
  readonly secret: Uint8Array<ArrayBuffer>;
  readonly job: string;
  /** SHA-256 of the manifest; null for a joiner, which learns it with its first link. */
  readonly manifestHash?: Uint8Array<ArrayBuffer> | null;
  /** Where the members of this job can be found; derived from the job when left out. */
  readonly names?: readonly string[];
  readonly clock?: Clock;
}

/** Links over WebRTC data channels, in a page or in a worker. */
export class WebRtcNetwork implements Network {
  readonly self: MemberId;
  onLink: ((link: Link) => void) | null = null;
  onRefused: ((sentence: string) => void) | null = null;
  readonly #connector: Connector;
  readonly #identity: Identity;
  readonly #keys: ProofKeys;
  readonly #names: readonly string[];
  readonly #clock: Clock;
  readonly #links = new Map<MemberId, ChannelLink>();
  readonly #dialler: Dialler;
  #manifestHash: Uint8Array<ArrayBuffer> | null;
  #visitors = 0;
  #closed: string | null = null;

  static async create(options: WebRtcNetworkOptions): Promise<WebRtcNetwork> {
    const keys = await deriveProofKeys(options.secret, options.job);
    return new WebRtcNetwork(options, keys, options.names ?? (await rendezvousNames(options.job, nameCount)));
  }

  private constructor(options: WebRtcNetworkOptions, keys: ProofKeys, names: readonly string[]) {
    this.self = options.identity.member;
    this.#connector = options.connector;
    this.#identity = options.identity;
    this.#keys = keys;
    this.#names = names;
    this.#clock = options.clock ?? realClock;
    this.#manifestHash = options.manifestHash ?? null;
    this.#dialler = new Dialler({
      self: this.self,
      connector: this.#connector,
      clock: this.#clock,
      links: this.#links,
      establish: (connection, role, peer) => this.#establish(connection, role, peer),
      report: (error) => this.#report(error),
    });
  }

  get links(): ReadonlyMap<MemberId, Link> {
    return this.#links;
  }

  /** SHA-256 of the job's manifest: as given, or as the first peer proved it. */
  get manifestHash(): Uint8Array<ArrayBuffer> | null {
    return this.#manifestHash;
  }
  setManifestHash(hash: Uint8Array<ArrayBuffer>): void {
    this.#manifestHash = hash;
  }

  /**
   * The first link, to whichever member answers first under one of the job's names.
   * @throws LinkError: "absent" when nobody runs the job, a refusal's code when the peer or this side refused, else "unreachable".
   */
  async contact(): Promise<Link> {
    const began = this.#clock.now();
    for (;;) {
      try {
        return await this.#contactOnce(contactMilliseconds - (this.#clock.now() - began));
      } catch (error) {
        const isAbsent = error instanceof LinkError && error.code === "absent";
        const waited = this.#clock.now() - began + absence.retryMilliseconds;
        if (!isAbsent || waited > absence.certainMilliseconds || this.#closed !== null) throw error;
      }
      await new Promise<void>((resolve) => {
        this.#clock.setTimeout(resolve, absence.retryMilliseconds);
      });
    }
  }

  async #contactOnce(milliseconds: number): Promise<Link> {
    const found = deferred<Link>();
    const pending = new Map<string, number | null>(this.#names.map((name) => [name, null]));
    let refusal: LinkError | null = null;
    let answered = false;
    let isOver = false;
    /** One proof at a time, in the order in which connections open, so that only one member gets a link. */
    let turn: Promise<unknown> = Promise.resolve();
    const settle = (name: string) => {
      const connection = pending.get(name) ?? null;
      if (connection !== null) this.#connector.close(connection);
      pending.delete(name);
      if (pending.size === 0) fail();
    };
    const fail = () => {
      if (refusal !== null) found.reject(refusal);
      else if (!answered) found.reject(new LinkError("absent", "Nobody runs this job any more."));
      else
        found.reject(
          new LinkError(
            "unreachable",
            "A member of this job answered, but no connection to it came about: a firewall may be in the way; a TURN server helps then.",
          ),
        );
    };
    const timer = this.#clock.setTimeout(fail, milliseconds);
    const meeting = this.#connector.meet(this.#names, (event) => {
      switch (event.kind) {
        case "absent":
          settle(event.name);
          return;
        case "answered":
          answered = true;
          return;
        case "dialled": {
          pending.set(event.name, event.connection.id);
          const attempt = this.#establish(event.connection, "dialer", null, async () => {
            const previous = turn;
            turn = attempt.catch(() => {});
            await previous;
            if (isOver) throw new LinkError("unreachable", "Another member answered first.");
          });
          attempt.then(
            (link) => {
              isOver = true;
              pending.delete(event.name);
              found.resolve(link);
            },
            (error: unknown) => {
              if (error instanceof LinkError && error.code !== "unreachable") refusal ??= error;
              settle(event.name);
            },
          );
        }
      }
    });
    meeting.catch((error: unknown) => {
      found.reject(new LinkError("unreachable", messageOf(error)));
    });
    try {
      return await found.promise;
    } finally {
      isOver = true;
      this.#clock.clearTimeout(timer);
      for (const connection of pending.values()) if (connection !== null) this.#connector.close(connection);
      this.#connector.endMeeting();
    }
  }

  /**
   * Lets joiners find this member under one of the job's names, from now on, also when the signaling server goes and comes back.
   * @throws Error with a sentence when the server can't be reached now; it is tried further all the same.
   */
  async claim(): Promise<void> {
    const result = await this.#connector.claim(this.#names, (connection) => this.#visit(connection));
    if (result.kind === "unreachable") throw new Error(result.sentence);
  }

  dial(peer: MemberId, via: MemberId): Promise<Link> {
    if (this.#closed !== null) return Promise.reject(new LinkError("unreachable", this.#closed));
    return this.#dialler.dial(peer, via);
  }

  close(reason: string): void {
    if (this.#closed !== null) return;
    this.#closed = reason;
    this.#dialler.abort(reason);
    for (const link of [...this.#links.values()]) link.close(reason);
    this.#connector.end();
  }

  /** Someone came through the signaling server. */
  #visit(connection: OpenedConnection): void {
    if (this.#visitors >= maxVisitors || this.#closed !== null) {
      this.#connector.close(connection.id);
      return;
    }
    this.#visitors += 1;
    this.#establish(connection, "acceptor", null)
      .catch((error: unknown) => this.#report(error))
      .finally(() => {
        this.#visitors -= 1;
      });
  }

  /** Those that were turned away are worth a word; those that just went aren't. */
  #report(error: unknown): void {
    if (error instanceof LinkError && error.code === "unreachable") return;
    this.onRefused?.(messageOf(error));
  }

  /** Proves both sides over a new connection and makes it a link. Must be called in the task in which the connection came. */
  async #establish(
    connection: OpenedConnection,
    role: Role,
    expectedPeer: MemberId | null,
    ready: () => Promise<unknown> = () => Promise.resolve(),
  ): Promise<Link> {
    try {
      const { link, peer } = await proveLink({
        pipe: pipeOf(connection.path),
        role,
        identity: this.#identity,
        keys: this.#keys,
        manifestHash: this.#manifestHash,
        expectedPeer,
        clock: this.#clock,
        facts: async () => {
          await ready();
          return this.#connector.facts(connection.id);
        },
      });
      this.#manifestHash ??= peer.manifestHash;
      link.onGone = () => {
        if (this.#links.get(link.peer) === link) this.#links.delete(link.peer);
        this.#connector.close(connection.id);
      };
      if (this.#closed !== null) {
        link.close(this.#closed);
        throw new LinkError("unreachable", this.#closed);
      }
      // The peer makes a new link only when it has lost the old one.
      const old = this.#links.get(link.peer);
      this.#links.set(link.peer, link);
      old?.close(`Member ${shortId(link.peer)} made a new link.`);
      link.onSignal = (frame) => this.#dialler.take(link, frame);
      this.onLink?.(link);
      return link;
    } catch (error) {
      this.#connector.close(connection.id);
      throw error;
    }
  }
}

function pipeOf(path: DataPath): Pipe {
  return path.kind === "channel" ? new ChannelPipe(path.channel) : new PortPipe(path.port);
}
