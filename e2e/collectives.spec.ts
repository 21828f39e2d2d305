import { type Browser, expect, test } from "@playwright/test";
import { build } from "vite";
import type * as EveryCollective from "../src/distributed/testing/everyCollective";
import { type RunningServer, startServer } from "../src/server/server";
import { launchFirefox } from "../tests/launchFirefox";

const worldSize = 3;
/** What a rank needs to find the others. */
type Place = Parameters<typeof EveryCollective.tryEveryCollective>[0];

/** What the tabs run, as one module. */
async function bundle(): Promise<string> {
  const result = await build({
    configFile: false,
    logLevel: "silent",
    publicDir: false,
    build: {
      write: false,
      target: "esnext",
      minify: false,
      lib: { entry: "src/distributed/testing/everyCollective.ts", formats: ["es"], fileName: "everyCollective" },
      rolldownOptions: { output: { codeSplitting: false } },
    },
  });
  const outputs = (Array.isArray(result) ? result : [result]).flatMap((one) => ("output" in one ? one.output : []));
  const chunk = outputs.find((output) => output.type === "chunk");
  if (chunk?.type !== "chunk") throw new Error("The bundle is empty.");
  return chunk.code;
}

/** Runs in the tab. @returns what is wrong there. */
async function tryInTab([module, place]: readonly [string, Place]): Promise<string[]> {
  const imported: typeof EveryCollective = await import(module);
  return imported.tryEveryCollective(place);
}

const module = "/everyCollective.js";

async function inChromium(browser: Browser, server: RunningServer, place: Place): Promise<string[]> {
  const context = await browser.newContext();
  const page = await context.newPage();
  await page.goto(`${server.localUrl}empty.html`);
  const problems = await page.evaluate(tryInTab, [module, place] as const);
  await context.close();
  return problems;
}

async function inFirefox(server: RunningServer, place: Place): Promise<string[]> {
  const firefox = await launchFirefox();
  try {
    const page = await firefox.newPage();
    await page.goto(`${server.localUrl}empty.html`);
    return await page.evaluate(tryInTab, [module, place] as const);
  } finally {
    await firefox.close();
  }
}

for (const firefoxRanks of [[], [1]])
  test(`every collective, message and object gives exact results on three ranks in ${firefoxRanks.length === 0 ? "Chromium" : "Chromium and Firefox"}`, async ({
    browser,
  }) => {
    const server = await startServer({
      port: 0,
      httpsPort: null,
      stunPort: 0,
      pages: {
        [module]: { type: "text/javascript", body: await bundle() },
        "/empty.html": { type: "text/html", body: "<!doctype html><title>A rank</title>" },
      },
    });
    try {
      const problems = await Promise.all(
        Array.from({ length: worldSize }, (_, rank) => {
          const place = { rank, worldSize, job: "every collective", secret: "A".repeat(22) };
          return firefoxRanks.some((one) => one === rank)
            ? inFirefox(server, place)
            : inChromium(browser, server, place);
        }),
      );
      expect(problems).toEqual([[], [], []]);
    } finally {
      await server.close();
    }
  });
