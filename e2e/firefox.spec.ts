import { expect, test } from "@playwright/test";
import { launchFirefox } from "../tests/launchFirefox";
import { expectSameCurve } from "./curves";
import { MemberTab, mlpSpec, startTestServer } from "./job";

// Another WGSL compiler (Naga), another adapter with other rounding, and data channels of another stack.
test("a tab in Firefox and one in Chromium train one model: the same weights bit for bit, and the lone tab's curve to 1e-4", async ({
  browser,
}) => {
  const server = await startTestServer();
  const firefox = await launchFirefox();
  try {
    const spec = mlpSpec({ steps: 30 });
    const alone = await MemberTab.open(browser, server);
    await alone.create(spec, "alone");
    await alone.finishes();
    const expected = (await alone.result()).losses;
    await alone.close();

    const maker = await MemberTab.open(browser, server);
    const address = await maker.create(spec, "Chromium", 2);
    const page = await firefox.newPage();
    await page.goto(`${server.localUrl}headless.html`);
    await page.waitForFunction(() => "ringletTab" in globalThis);
    await page.evaluate((link) => ringletTab.join(link, "Firefox"), address);
    await maker.finishes();
    await page.waitForFunction(() => ringletTab.progress()?.phase.kind === "finished", { timeout: 60_000 });

    const inChromium = await maker.result();
    const inFirefox = await page.evaluate(() => ringletTab.result());
    expect(inFirefox.self.samples).toBeGreaterThan(0);
    expect(inChromium.self.samples).toBeGreaterThan(0);
    expect(inFirefox.self.weightsHash).toBe(inChromium.self.weightsHash);
    expect(inFirefox.losses).toEqual(inChromium.losses);
    expectSameCurve(inChromium.losses, expected, 1e-4);
    await maker.close();
  } finally {
    await firefox.close();
    await server.close();
  }
});
