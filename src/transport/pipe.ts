/** What a link needs of a data channel, whether it is here or on the other side of a MessagePort. */
export interface Pipe {
  readonly state: "connecting" | "open" | "closed";
  /** Bytes that were sent but haven't left yet. */
  readonly bufferedAmount: number;
  /** These must be set in the task in which the pipe is made, as a message may come right after it, even before `onOpen`. */
  onOpen: (() => void) | null;
  onMessage: ((message: ArrayBuffer) => void) | null;
  /** bufferedAmount fell to lowWaterBytes or below. */
  onLow: (() => void) | null;
  onClose: ((reason: string) => void) | null;
  /** Copies the message before it returns. Does nothing unless open. */
  send(message: Uint8Array<ArrayBuffer>): void;
  /** Sends what is buffered, then closes. */
  close(): void;
}

/** A pipe asks for more when no more than this is buffered: enough to go on while the thread that sends is busy. */
export const lowWaterBytes = 512 * 1024;
/** And is given no more than makes this. */
export const highWaterBytes = 1024 * 1024;

/** A data channel in this thread. */
export class ChannelPipe implements Pipe {
  onOpen: (() => void) | null = null;
  onMessage: ((message: ArrayBuffer) => void) | null = null;
  onLow: (() => void) | null = null;
  onClose: ((reason: string) => void) | null = null;
  readonly #channel: RTCDataChannel;
  #closed = false;

  constructor(channel: RTCDataChannel) {
    this.#channel = channel;
    channel.binaryType = "arraybuffer";
    channel.bufferedAmountLowThreshold = lowWaterBytes;
    channel.onopen = () => this.onOpen?.();
    channel.onmessage = (event: MessageEvent<unknown>) => {
      if (this.#closed) return;
      if (event.data instanceof ArrayBuffer) this.onMessage?.(event.data);
      else this.#end("It sent text instead of bytes.");
    };
    channel.onbufferedamountlow = () => this.onLow?.();
    channel.onerror = (event) => this.#end(`Its connection failed: ${event.error.message}.`);
    channel.onclose = () => this.#end("Its connection closed.");
  }

  get state(): Pipe["state"] {
    const state = this.#channel.readyState;
    return this.#closed || state === "closing" || state === "closed" ? "closed" : state;
  }

  get bufferedAmount(): number {
    return this.#channel.bufferedAmount;
  }

  send(message: Uint8Array<ArrayBuffer>): void {
    if (this.state === "open") this.#channel.send(message);
  }

  close(): void {
    this.#end("This side closed it.");
  }

  #end(reason: string): void {
    if (this.#closed) return;
    this.#closed = true;
    this.#channel.close();
    this.onClose?.(reason);
  }
}

/** What goes over the port of a relayed channel besides its messages' buffers. */
type RelayNotice =
  /** To the link: of all bytes sent through the port, `taken` are with the channel, which holds `buffered`. */
  | { readonly kind: "sent"; readonly taken: number; readonly buffered: number }
  | { readonly kind: "open" }
  /** Either way. */
  | { readonly kind: "close"; readonly reason: string };

function isNotice(data: unknown): data is RelayNotice {
  return typeof data === "object" && data !== null && "kind" in data;
}

/** The end of a relayed channel at which the link is, where the browser can't hand the channel itself over. */
export class PortPipe implements Pipe {
  onOpen: (() => void) | null = null;
  onMessage: ((message: ArrayBuffer) => void) | null = null;
  onLow: (() => void) | null = null;
  onClose: ((reason: string) => void) | null = null;
  state: Pipe["state"] = "connecting";
  readonly #port: MessagePort;
  #posted = 0;
  #taken = 0;
  #buffered = 0;

  constructor(port: MessagePort) {
    this.#port = port;
    port.onmessage = (event: MessageEvent<unknown>) => {
      if (this.state === "closed") return;
      if (event.data instanceof ArrayBuffer) this.onMessage?.(event.data);
      else if (isNotice(event.data)) this.#notice(event.data);
    };
  }

  get bufferedAmount(): number {
    return this.#posted - this.#taken + this.#buffered;
  }

  send(message: Uint8Array<ArrayBuffer>): void {
    if (this.state !== "open") return;
    const copy = message.slice();
    this.#posted += copy.length;
    this.#port.postMessage(copy.buffer, [copy.buffer]);
  }

  close(): void {
    if (this.state === "closed") return;
    this.#port.postMessage({ kind: "close", reason: "" } satisfies RelayNotice);
    this.#end("This side closed it.");
  }

  #notice(notice: RelayNotice): void {
    switch (notice.kind) {
      case "open":
        this.state = "open";
        this.onOpen?.();
        return;
      case "sent": {
        const before = this.bufferedAmount;
        this.#taken = notice.taken;
        this.#buffered = notice.buffered;
        if (before > lowWaterBytes && this.bufferedAmount <= lowWaterBytes) this.onLow?.();
        return;
      }
      case "close":
        this.#end(notice.reason);
    }
  }

  #end(reason: string): void {
    this.state = "closed";
    this.onClose?.(reason);
  }
}

/**
 * Joins a data channel of this thread to a port, whose other end becomes a PortPipe. Buffers move, they aren't copied.
 * @returns the port to hand over.
 */
export function relayChannel(channel: RTCDataChannel): MessagePort {
  const { port1, port2 } = new MessageChannel();
  const pipe = new ChannelPipe(channel);
  let taken = 0;
  const notify = (notice: RelayNotice) => port1.postMessage(notice);
  const report = () => notify({ kind: "sent", taken, buffered: pipe.bufferedAmount });
  pipe.onOpen = () => notify({ kind: "open" });
  pipe.onMessage = (message) => port1.postMessage(message, [message]);
  pipe.onLow = report;
  pipe.onClose = (reason) => notify({ kind: "close", reason });
  if (pipe.state === "open") pipe.onOpen();
  port1.onmessage = (event: MessageEvent<unknown>) => {
    if (event.data instanceof ArrayBuffer) {
      taken += event.data.byteLength;
      pipe.send(new Uint8Array(event.data));
      report();
    } else pipe.close();
  };
  return port2;
}
