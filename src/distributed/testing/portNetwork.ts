import { FrameInbox } from "../../transport/frameInbox";
import type { Frame, FrameHeader, Link, MemberId, Network } from "../../transport/link";

/** A link over a MessagePort between workers of one page: each worker is a rank with a device of its own. */
class PortLink implements Link {
  readonly maxPayload = 63 * 1024;
  readonly counters = { sentPayload: 0, sentTotal: 0, receivedPayload: 0, receivedTotal: 0 };
  readonly open = true;
  onClose: ((reason: string) => void) | null = null;
  readonly #inbox = new FrameInbox();

  constructor(
    readonly peer: MemberId,
    private readonly port: MessagePort,
  ) {
    port.onmessage = ({ data }: MessageEvent<Frame>) => void this.#inbox.deliver(data);
  }

  get onFrame(): ((frame: Frame) => void) | null {
    return this.#inbox.handler;
  }
  set onFrame(handler: ((frame: Frame) => void) | null) {
    this.#inbox.handler = handler;
  }

  send({ kind, epoch, step, channel, offset }: FrameHeader, payload: Uint8Array): void {
    const copy = payload.slice();
    this.port.postMessage({ kind, epoch, step, channel, offset, payload: copy }, [copy.buffer]);
  }

  drained(): Promise<void> {
    return Promise.resolve();
  }

  close(): void {
    this.port.close();
  }
}

/** @param ports by member, to all others. */
export function portNetwork(self: MemberId, ports: ReadonlyMap<MemberId, MessagePort>): Network {
  const links = new Map([...ports].map(([peer, port]) => [peer, new PortLink(peer, port)]));
  return {
    self,
    links,
    onLink: null,
    onRefused: null,
    dial: () => Promise.reject(new Error("These ranks are linked from the beginning.")),
    close: () => {
      for (const link of links.values()) link.close();
    },
  };
}
