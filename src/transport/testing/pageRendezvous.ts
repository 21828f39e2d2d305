import type { BrowserConnector } from "../browserConnector";
import type { Connector, OpenedConnection } from "../connector";
import { carrying } from "../connectorPort";

interface Claim {
  readonly connector: BrowserConnector;
  readonly onVisitor: (connection: OpenedConnection) => void;
}

/** Stands in for the signaling server where both sides are in one page; the connections that come of it are real. */
export class PageRendezvous {
  readonly #claims = new Map<string, Claim>();

  /** A connector that meets others in this place. */
  join(connector: BrowserConnector): Connector {
    return {
      open: () => connector.open(),
      offer: (id) => connector.offer(id),
      answer: (id, offer) => connector.answer(id, offer),
      accept: (id, answer) => connector.accept(id, answer),
      facts: (id) => connector.facts(id),
      close: (id) => connector.close(id),
      end: () => connector.end(),
      endMeeting: async () => {},
      meet: async (names, onEvent) => {
        for (const name of names) {
          const claim = this.#claims.get(name);
          if (claim === undefined) {
            onEvent({ kind: "absent", name });
            continue;
          }
          const dialled = await connector.open();
          onEvent(carrying({ kind: "dialled", name, connection: dialled }, dialled));
          const visitor = await claim.connector.open();
          claim.onVisitor(visitor);
          const answer = await claim.connector.answer(visitor.id, await connector.offer(dialled.id));
          onEvent({ kind: "answered", name });
          await connector.accept(dialled.id, answer);
        }
      },
      claim: async (names, onVisitor) => {
        const name = names.find((candidate) => !this.#claims.has(candidate));
        if (name === undefined) return { kind: "taken" };
        this.#claims.set(name, { connector, onVisitor });
        return { kind: "claimed", name };
      },
    };
  }
}
