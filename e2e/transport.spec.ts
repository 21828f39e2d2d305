import { type Browser, expect, type Page, test } from "@playwright/test";
import { type RunningServer, startServer } from "../src/server/server";
import type * as Tab from "../src/transport/testing/tab";

const start = (port: number) =>
  startServer({ port, httpsPort: null, stunPort: 0, source: { kind: "development" }, warn: () => {} });

/** A tab of its own browsing context, and what it can be asked. */
class RemoteTab {
  private constructor(
    readonly page: Page,
    readonly id: string,
  ) {}

  static async open(browser: Browser, server: RunningServer, job: string, secret: number, isMaker = false) {
    const page = await (await browser.newContext()).newPage();
    await page.goto(`${server.localUrl}ringlet.json`);
    const id = await page.evaluate(
      async ([module, ...args]) => {
        const tab: typeof Tab = await import(module);
        return tab.start(...args);
      },
      ["/src/transport/testing/tab.ts", job, secret, isMaker] as const,
    );
    return new RemoteTab(page, id);
  }

  claim = () => this.#ask("claim", []);
  contact = () => this.#ask("contact", []);
  dial = (peer: string, via: string) => this.#ask("dial", [peer, via]);
  peers = () => this.#ask("peers", []);
  told = () => this.#ask("told", []);
  echo = (peer: string, bytes: number) => this.#ask("echo", [peer, bytes]);

  #ask<Name extends Exclude<keyof typeof Tab, "start">>(
    name: Name,
    args: Parameters<(typeof Tab)[Name]>,
  ): Promise<Awaited<ReturnType<(typeof Tab)[Name]>>> {
    return this.page.evaluate(
      async ({ module, name, args }) => {
        const tab = await import(module);
        return tab[name](...args);
      },
      { module: "/src/transport/testing/tab.ts", name, args },
    );
  }
}

test.afterEach(async ({ browser }) => {
  for (const context of browser.contexts()) await context.close();
});

test("tabs meet at the server, prove themselves, and exchange frames", async ({ browser }) => {
  const server = await start(0);
  const maker = await RemoteTab.open(browser, server, "meeting", 1, true);
  await maker.claim();
  const joiner = await RemoteTab.open(browser, server, "meeting", 1);
  expect(await joiner.contact()).toBe(maker.id);
  expect(await joiner.echo(maker.id, 60_000)).toBe(60_000);

  const stranger = await RemoteTab.open(browser, server, "meeting", 2);
  const sentence = (member: string) => `Member ${member.slice(0, 8)} and this side don't have the same secret`;
  expect(await stranger.contact()).toContain(`secret: ${sentence(maker.id)}`);
  expect((await maker.told()).refusals).toEqual([expect.stringContaining(sentence(stranger.id))]);
  expect(await maker.peers()).toEqual([joiner.id]);

  const late = await RemoteTab.open(browser, server, "another job", 1);
  expect(await late.contact()).toBe("absent: Nobody runs this job any more.");
  await server.close();
});

test("a job can be found at another member once its maker's tab is closed, and the peers know at once", async ({
  browser,
}) => {
  const server = await start(0);
  const maker = await RemoteTab.open(browser, server, "takeover", 1, true);
  await maker.claim();
  const second = await RemoteTab.open(browser, server, "takeover", 1);
  await second.contact();
  await second.claim();
  await maker.page.close();
  await expect.poll(() => second.peers()).toEqual([]);
  expect((await second.told()).goodbyes).toEqual([
    expect.stringContaining(`The link to member ${maker.id.slice(0, 8)} is gone.`),
  ]);
  const joiner = await RemoteTab.open(browser, server, "takeover", 1);
  expect(await joiner.contact()).toBe(second.id);
  await server.close();
});

test("without the server links stay, new ones are made through members, and names are claimed again when it is back", async ({
  browser,
}) => {
  const server = await start(0);
  const maker = await RemoteTab.open(browser, server, "outage", 1, true);
  await maker.claim();
  const [left, right] = [
    await RemoteTab.open(browser, server, "outage", 1),
    await RemoteTab.open(browser, server, "outage", 1),
  ];
  await left.contact();
  await right.contact();
  await left.claim();
  await server.close();

  expect(await left.echo(maker.id, 1000)).toBe(1000);
  expect(await left.dial(right.id, maker.id)).toBe(right.id);
  await maker.page.close();
  await expect.poll(() => left.peers()).toEqual([right.id]);
  expect(await left.echo(right.id, 1000)).toBe(1000);

  const again = await start(server.port);
  const joiner = await RemoteTab.open(browser, again, "outage", 1);
  await expect.poll(() => joiner.contact()).toBe(left.id);
  await again.close();
});
