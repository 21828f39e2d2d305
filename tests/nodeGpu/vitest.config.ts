import { resolve } from "node:path";
import { defineConfig } from "vitest/config";

/** The comparison with PyTorch's operators in Node over Dawn, on a machine with a GPU driver and no browser. */
export default defineConfig({
  resolve: { alias: { ringlet: resolve("src/index.ts") } },
  test: {
    include: ["tests/operators.browser.test.ts", "tests/training.browser.test.ts"],
    testTimeout: 240_000,
    fileParallelism: false,
    pool: "forks",
    environment: "node",
    globalSetup: ["tests/nodeGpu/serveAnswers.ts"],
    setupFiles: ["tests/nodeGpu/likeAPage.ts"],
  },
});
