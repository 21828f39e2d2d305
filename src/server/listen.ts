import type { Socket } from "node:dgram";
import type { Server } from "node:net";
import { ServerError } from "./errors";

export interface Place {
  readonly host: string;
  /** 0 lets the system choose. */
  readonly port: number;
  /** The command line's option for another port, which errors name. */
  readonly option: string;
  /** An address that this machine doesn't have is then no error. */
  readonly optional: boolean;
}

/** Something that listens, and knows how to end. */
export interface Bound {
  readonly port: number;
  close(): Promise<void>;
}

/**
 * Opens the same port at each of `hosts`, of which the machine must have the first. When the system chooses the port,
 * one that is taken at a later host is given up for another.
 *
 * @throws ServerError when a port is taken or an address can't be bound; nothing stays open then.
 */
export async function bindEach(
  hosts: readonly string[],
  port: number,
  option: string,
  open: (place: Place) => Promise<Bound | null>,
): Promise<Bound> {
  for (let attempt = 1; ; attempt++) {
    const bound: Bound[] = [];
    const close = async () => {
      await Promise.all(bound.map((one) => one.close()));
    };
    try {
      for (const host of hosts) {
        const one = await open({ host, port: bound[0]?.port ?? port, option, optional: bound.length > 0 });
        if (one) bound.push(one);
      }
    } catch (error) {
      await close();
      const isChance = port === 0 && bound.length > 0 && error instanceof ServerError;
      if (isChance && attempt < 5) continue;
      throw error;
    }
    return { port: bound[0]?.port ?? port, close };
  }
}

/** Listens on TCP. Resolves to false when the address is optional and not there. @throws ServerError */
export function listen(server: Server, place: Place): Promise<boolean> {
  const { host, port } = place;
  return attempt(place, server, (done) =>
    server.listen({ host, port, exclusive: true, ipv6Only: host.includes(":") }, done),
  );
}

/** Binds a UDP socket, as `listen` does for TCP. */
export function bindSocket(socket: Socket, place: Place): Promise<boolean> {
  return attempt(place, socket, (done) =>
    socket.bind({ address: place.host, port: place.port, exclusive: true }, done),
  );
}

const missingAddress = new Set(["EADDRNOTAVAIL", "EAFNOSUPPORT", "EINVAL"]);

function attempt(place: Place, emitter: NodeJS.EventEmitter, begin: (done: () => void) => void): Promise<boolean> {
  return new Promise((resolve, reject) => {
    const onError = (error: NodeJS.ErrnoException) => {
      if (place.optional && missingAddress.has(error.code ?? "")) resolve(false);
      else reject(new ServerError(explain(error, place)));
    };
    emitter.once("error", onError);
    begin(() => {
      emitter.off("error", onError);
      resolve(true);
    });
  });
}

function explain(error: NodeJS.ErrnoException, { host, port, option }: Place): string {
  switch (error.code) {
    case "EADDRINUSE":
      return `Port ${port} is already in use at ${host}: stop what uses it, or choose another port with ${option}.`;
    case "EACCES":
      return `Port ${port} may not be used without more rights: choose one above 1023 with ${option}.`;
    case "EADDRNOTAVAIL":
    case "EAFNOSUPPORT":
    case "EINVAL":
      return `This machine has no address ${host} to serve at: choose one of its own with --host.`;
    case "ENOTFOUND":
    case "EAI_AGAIN":
      return `The host name ${host} is not known: give one of this machine's names or addresses with --host.`;
    default:
      return `Port ${port} at ${host} can't be opened: ${error.message}.`;
  }
}
