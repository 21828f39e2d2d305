import { createServer } from "vite";
import type { TestProject } from "vitest/node";
import { serveReference } from "../serveReference";

declare module "vitest" {
  interface ProvidedContext {
    /** Where PyTorch's answers are served. */
    referenceOrigin: string;
  }
}

/** Serves PyTorch's answers on loopback, as a page's own server does. */
export default async function serveAnswers({ provide }: TestProject): Promise<() => Promise<void>> {
  const server = await createServer({
    configFile: false,
    logLevel: "warn",
    plugins: [serveReference()],
    optimizeDeps: { noDiscovery: true },
    server: { host: "127.0.0.1", port: 0, hmr: false, watch: null },
  });
  await server.listen();
  const address = server.httpServer?.address();
  if (!address || typeof address === "string") throw new Error("The reference's server got no port on 127.0.0.1.");
  provide("referenceOrigin", `http://127.0.0.1:${address.port}`);
  return () => server.close();
}
