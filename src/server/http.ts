import type { IncomingMessage, ServerResponse } from "node:http";

/** Answers a request, or leaves it to the next by calling `next`. */
export type Handler = (request: IncomingMessage, response: ServerResponse, next: () => void) => void;

/** The path of a request without its query; never throws, whatever was sent. */
export const pathOf = (request: IncomingMessage): string => (request.url ?? "").split("?", 1)[0] ?? "";

/** A header's first value. */
export const headerOf = (value: string | readonly string[] | undefined): string | undefined =>
  typeof value === "string" ? value : value?.[0];

/** Tries the handlers in turn; when none answers, says so with 404. */
export function inTurn(handlers: readonly Handler[]): (request: IncomingMessage, response: ServerResponse) => void {
  return (request, response) => {
    const run = (index: number) => {
      const handler = handlers[index];
      if (handler) handler(request, response, () => run(index + 1));
      else sendText(response, 404, `There is nothing at ${pathOf(request)}.`);
    };
    run(0);
  };
}

export function sendText(response: ServerResponse, status: number, text: string): void {
  send(response, status, "text/plain; charset=utf-8", text);
}

export function sendJson(response: ServerResponse, value: unknown): void {
  send(response, 200, "application/json", JSON.stringify(value));
}

export function send(response: ServerResponse, status: number, type: string, body: string): void {
  response.writeHead(status, {
    "content-type": type,
    "content-length": Buffer.byteLength(body),
    "cache-control": "no-store",
  });
  response.end(response.req.method === "HEAD" ? undefined : body);
}

/** Only reading is offered; signaling, which has methods of its own, comes before this. */
export const readOnly: Handler = (request, response, next) => {
  if (request.method === "GET" || request.method === "HEAD") next();
  else {
    response.setHeader("allow", "GET, HEAD");
    sendText(response, 405, `${request.method} is not possible at ${pathOf(request)}; GET is.`);
  }
};

/**
 * Cross-origin isolation gives pages precise clocks, a measure of their memory and shared memory between workers; all
 * they load comes from here. No other site may frame a page, so that nobody is tricked into pressing Join.
 */
const isolation = {
  "cross-origin-opener-policy": "same-origin",
  "cross-origin-embedder-policy": "require-corp",
  "cross-origin-resource-policy": "same-origin",
  "x-content-type-options": "nosniff",
  "referrer-policy": "no-referrer",
  "content-security-policy": "frame-ancestors 'none'; base-uri 'none'; object-src 'none'",
};

export const securityHeaders: Handler = (_, response, next) => {
  for (const [name, value] of Object.entries(isolation)) response.setHeader(name, value);
  next();
};
