import { resolve } from "node:path";
import { playwright } from "@vitest/browser-playwright";
import { defineConfig } from "vitest/config";
import { softwareGpuArguments } from "./scripts/browser.mjs";
import { firefox } from "./tests/firefoxProvider.ts";
import { serveReference } from "./tests/serveReference.ts";

const alias = { ringlet: resolve("src/index.ts") };

/** In Firefox `npm run test:full` runs all that computes; otherwise a part that every kind of kernel has its share in. */
const inFirefox =
  process.env.RINGLET_TEST_FULL === "1"
    ? ["src/{gpu,tensor,optim}/**/*.browser.test.ts", "tests/*.browser.test.ts"]
    : [
        "src/gpu/device.browser.test.ts",
        "src/tensor/{elementwise,narrowFloats,numerics}.browser.test.ts",
        "src/optim/*.browser.test.ts",
        "tests/{extremes,operators,training}.browser.test.ts",
      ];

export default defineConfig({
  resolve: { alias },
  test: {
    projects: [
      {
        resolve: { alias },
        test: {
          name: "unit",
          testTimeout: 120_000,
          environment: "node",
          include: ["{src,tests}/**/*.test.ts"],
          exclude: ["**/*.browser.test.ts"],
        },
      },
      {
        resolve: { alias },
        plugins: [serveReference({ sample: process.env.RINGLET_TEST_FULL !== "1" })],
        test: {
          name: "firefox",
          include: inFirefox,
          testTimeout: 240_000,
          fileParallelism: false,
          browser: {
            enabled: true,
            headless: true,
            screenshotFailures: false,
            instances: [{ browser: "firefox" }],
            provider: firefox,
          },
        },
      },
      {
        resolve: { alias },
        plugins: [serveReference()],
        test: {
          name: "browser",
          include: ["{src,tests}/**/*.browser.test.ts"],
          testTimeout: 120_000,
          fileParallelism: false,
          browser: {
            enabled: true,
            headless: true,
            screenshotFailures: false,
            instances: [{ browser: "chromium" }],
            provider: playwright({
              launchOptions: { executablePath: process.env.RINGLET_BROWSER ?? "", args: softwareGpuArguments },
            }),
          },
        },
      },
    ],
  },
});
