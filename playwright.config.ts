import { defineConfig } from "@playwright/test";
import { softwareGpuArguments } from "./scripts/browser.mjs";

export default defineConfig({
  testDir: "e2e",
  timeout: 180_000,
  expect: { timeout: 30_000 },
  // Tabs share two cores and one software adapter: one test at a time.
  workers: 1,
  fullyParallel: false,
  forbidOnly: true,
  retries: 0,
  reporter: "list",
  use: {
    actionTimeout: 20_000,
    navigationTimeout: 30_000,
    launchOptions: { executablePath: process.env.RINGLET_BROWSER ?? "", args: softwareGpuArguments },
  },
});
