import { expose, proxy, transfer, wrap } from "comlink";
import type { Connector, OpenedConnection } from "./connector";

/** Marks what of a connection must be transferred with `value`, which has it in it, when that goes to a worker. */
export function carrying<T>(value: T, { path }: OpenedConnection): T {
  return transfer(value, [path.kind === "channel" ? path.channel : path.port]);
}

/** Serves a page's connector to a worker that has the other end of `port`. */
export function exposeConnector(connector: Connector, port: MessagePort): void {
  expose(connector, port);
}

/** The page's connector as a worker sees it. */
export function connectorFrom(port: MessagePort): Connector {
  const remote = wrap<Connector>(port);
  return {
    open: () => remote.open(),
    offer: (id) => remote.offer(id),
    answer: (id, offer) => remote.answer(id, offer),
    accept: (id, answer) => remote.accept(id, answer),
    facts: (id) => remote.facts(id),
    close: (id) => remote.close(id),
    meet: (names, onEvent) => remote.meet(names, proxy(onEvent)),
    endMeeting: () => remote.endMeeting(),
    claim: (names, onVisitor) => remote.claim(names, proxy(onVisitor)),
    end: () => remote.end(),
  };
}
