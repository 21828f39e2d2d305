import { existsSync } from "node:fs";
import { createServer, type IncomingMessage } from "node:http";
import { join } from "node:path";
import type { Duplex } from "node:stream";
import sirv from "sirv";
import { ServerError } from "./errors";
import type { Handler } from "./http";
import { packageRoot } from "./packageRoot";

/** Where the pages come from. */
export interface Pages {
  readonly handler: Handler;
  /** Takes a web socket's upgrade when it is for the pages. */
  upgrade(request: IncomingMessage, socket: Duplex, head: Buffer): boolean;
  close(): Promise<void>;
}

/** The pages as `npm run build` left them. @throws ServerError when it hasn't run. */
export function builtPages(folder = join(packageRoot, "dist", "page")): Pages {
  if (!existsSync(join(folder, "index.html")))
    throw new ServerError(`The page is not built (${folder} has no index.html): run \`npm run build\` first.`);
  const handler = sirv(folder, {
    etag: true,
    setHeaders(response, path) {
      // Vite puts a hash of the content into these names.
      const isHashed = path.startsWith("/assets/");
      response.setHeader("cache-control", isHashed ? "public, max-age=31536000, immutable" : "no-cache");
    },
  });
  return { handler, upgrade: () => false, close: async () => {} };
}

/** The pages straight from the sources, with hot reload. @param hosts the names that the pages may be reached by. */
export async function developmentPages(hosts: readonly string[], root = packageRoot): Promise<Pages> {
  const configFile = join(root, "vite.config.ts");
  if (!existsSync(configFile))
    throw new ServerError("--dev serves Ringlet's own sources, which are only there in a clone of its repository.");
  const { createServer: createVite } = await import("vite");
  // Vite looks for its web sockets on one server, and there are several here: it gets one that never listens, and from
  // it what is its own.
  const hub = createServer();
  const vite = await createVite({
    root,
    configFile,
    appType: "mpa",
    server: { middlewareMode: true, ws: { server: hub }, allowedHosts: [...hosts] },
  });
  return {
    handler: (request, response, next) => vite.middlewares(request, response, next),
    upgrade(request, socket, head) {
      const protocol = request.headers["sec-websocket-protocol"];
      if (protocol !== "vite-hmr" && protocol !== "vite-ping") return false;
      hub.emit("upgrade", request, socket, head);
      return true;
    },
    close: () => vite.close(),
  };
}
