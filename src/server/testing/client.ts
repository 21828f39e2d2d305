import { randomBytes } from "node:crypto";
import { request as httpRequest, type IncomingMessage } from "node:http";
import { request as httpsRequest } from "node:https";
import type { Duplex } from "node:stream";

const requestFor = (url: URL) => (url.protocol === "https:" ? httpsRequest : httpRequest);

export interface Answer {
  readonly status: number;
  readonly headers: IncomingMessage["headers"];
  readonly body: Buffer;
}

/** A request whose path is sent as it is, where `fetch` would tidy it up; certificates aren't checked. */
export function rawRequest(origin: string, path: string, method = "GET", headers = {}): Promise<Answer> {
  const url = new URL(origin);
  return new Promise((resolve, reject) => {
    const { hostname, port } = url;
    const options = {
      hostname: hostname.replace(/[[\]]/g, ""),
      port,
      path,
      method,
      headers,
      rejectUnauthorized: false,
    };
    requestFor(url)(options, (response) => {
      const chunks: Buffer[] = [];
      response.on("data", (chunk: Buffer) => chunks.push(chunk));
      response.on("end", () =>
        resolve({ status: response.statusCode ?? 0, headers: response.headers, body: Buffer.concat(chunks) }),
      );
    })
      .on("error", reject)
      .end();
  });
}

/** As much of a web socket's client (RFC 6455) as short text messages need. */
export class SocketClient {
  #received = Buffer.alloc(0);
  readonly #messages: unknown[] = [];
  #waiting: (() => void) | null = null;
  #closed = false;

  private constructor(private readonly socket: Duplex) {
    socket.on("data", (chunk: Buffer) => this.#take(chunk));
    socket.on("error", () => {});
    socket.on("close", () => {
      this.#closed = true;
      this.#waiting?.();
    });
  }

  /** Rejects with the HTTP status when the upgrade is refused. */
  static open(origin: string, path: string, headers: Readonly<Record<string, string>> = {}): Promise<SocketClient> {
    const url = new URL(path, origin);
    return new Promise((resolve, reject) => {
      const handshake = {
        connection: "Upgrade",
        upgrade: "websocket",
        "sec-websocket-version": "13",
        "sec-websocket-key": randomBytes(16).toString("base64"),
      };
      const options = { headers: { ...handshake, ...headers }, rejectUnauthorized: false };
      requestFor(url)(url, options)
        .on("upgrade", (_, socket, head) => {
          const client = new SocketClient(socket);
          client.#take(head);
          resolve(client);
        })
        .on("response", (response) => reject(new Error(`refused with ${response.statusCode}`)))
        .on("error", reject)
        .end();
    });
  }

  send(message: unknown): void {
    this.sendText(JSON.stringify(message));
  }

  sendText(text: string): void {
    const payload = Buffer.from(text);
    if (payload.length > 125) throw new Error("This client sends short messages only.");
    // A client must mask, and a mask of zeros changes nothing.
    this.socket.write(Buffer.concat([Buffer.from([0x81, 0x80 | payload.length, 0, 0, 0, 0]), payload]));
  }

  /** The next text message, parsed. */
  async next(): Promise<unknown> {
    while (this.#messages.length === 0) {
      if (this.#closed) throw new Error("closed");
      await new Promise<void>((resolve) => {
        this.#waiting = resolve;
      });
    }
    return this.#messages.shift();
  }

  async closed(): Promise<void> {
    while (!this.#closed)
      await new Promise<void>((resolve) => {
        this.#waiting = resolve;
      });
  }

  end(): void {
    this.socket.destroy();
  }

  #take(chunk: Buffer) {
    this.#received = Buffer.concat([this.#received, chunk]);
    for (;;) {
      const short = this.#received[1];
      if (short === undefined) return;
      const headerBytes = short === 126 ? 4 : 2;
      if (this.#received.length < headerBytes) return;
      const length = short === 126 ? this.#received.readUInt16BE(2) : short;
      if (this.#received.length < headerBytes + length) return;
      const isText = this.#received[0] === 0x81;
      const payload = this.#received.subarray(headerBytes, headerBytes + length);
      if (isText) this.#messages.push(JSON.parse(payload.toString()));
      this.#received = this.#received.subarray(headerBytes + length);
      this.#waiting?.();
    }
  }
}

/** Opens signaling as PeerJS does, and waits until it is accepted. */
export async function signIn(origin: string, id: string, token = "token"): Promise<SocketClient> {
  const client = await SocketClient.open(origin, `/signal/peerjs?key=peerjs&id=${id}&token=${token}&version=1.5.5`);
  const first = await client.next();
  if (JSON.stringify(first) !== '{"type":"OPEN"}') throw new Error(`not accepted: ${JSON.stringify(first)}`);
  return client;
}
