import { expect, test } from "@playwright/test";
import type { RunningServer } from "../src/server/server";
import { expectSameCurve } from "./curves";
import { MemberTab, mlpSpec, startTestServer } from "./job";

let server: RunningServer;
test.beforeEach(async () => {
  server = await startTestServer();
});
test.afterEach(async ({ browser }) => {
  for (const context of browser.contexts()) await context.close();
  await server.close();
});

// Long enough for a tab to get ready and join on a slow machine.
const spec = mlpSpec({ steps: 200 });

test("a tab joins at step 20, another closes in mid-step at step 40, and the curve is the lone tab's", async ({
  browser,
}) => {
  const alone = await MemberTab.open(browser, server);
  await alone.create(spec, "alone");
  await alone.finishes();
  const expected = (await alone.result()).losses;
  await alone.close();

  const [maker, second, third] = await Promise.all([1, 2, 3].map(() => MemberTab.open(browser, server)));
  if (!maker || !second || !third) throw new Error("three tabs were opened");
  const address = await maker.create(spec, "maker", 2);
  await second.join(address, "second");
  await maker.reaches(20);
  await third.join(address, "third");
  await third.isInRingOf(3);
  await maker.reaches(40);
  await second.close();
  await Promise.all([maker.finishes(), third.finishes()]);

  const [atMaker, atThird] = [await maker.result(), await third.result()];
  expectSameCurve(atMaker.losses, expected);
  expect(atThird.self.weightsHash).toBe(atMaker.self.weightsHash);
  expect(atThird.losses).toEqual(atMaker.losses);
  expect(atThird.self.samples).toBeGreaterThan(0);
  await Promise.all([maker.close(), third.close()]);
});

test("the maker's tab may go: the others finish, and it comes back by the same link", async ({ browser }) => {
  const [maker, second, back] = await Promise.all([1, 2, 3].map(() => MemberTab.open(browser, server)));
  if (!maker || !second || !back) throw new Error("three tabs were opened");
  // Alone, the second is twice as fast.
  const address = await maker.create({ ...spec, steps: 2 * spec.steps }, "maker", 2);
  await second.join(address, "second");
  await second.reaches(10);
  await maker.close();
  await second.isInRingOf(1);
  await back.join(address, "maker again");
  await back.isInRingOf(2);
  await Promise.all([second.finishes(), back.finishes()]);
  expect((await back.result()).self.weightsHash).toBe((await second.result()).self.weightsHash);
  await Promise.all([second.close(), back.close()]);
});

test("with the server stopped in mid-job nothing stops, and a ring of three shrinks to two", async ({ browser }) => {
  const tabs = await Promise.all([1, 2, 3].map(() => MemberTab.open(browser, server)));
  const [maker, second, third] = tabs;
  if (!maker || !second || !third) throw new Error("three tabs were opened");
  const address = await maker.create(spec, "maker", 3);
  await Promise.all([second.join(address, "second"), third.join(address, "third")]);
  await maker.reaches(10);
  await server.close();
  await maker.reaches(20);
  await second.leave();
  await maker.isInRingOf(2);
  await Promise.all([maker.finishes(), third.finishes()]);
  const results = [await maker.result(), await third.result()];
  expect(results[0]?.steps).toBe(spec.steps);
  expect(results[1]?.self.weightsHash).toBe(results[0]?.self.weightsHash);
  await Promise.all(tabs.map((tab) => tab.close()));
});

test("a wrong secret is refused on both sides, in a sentence each", async ({ browser }) => {
  const [maker, stranger] = await Promise.all([1, 2].map(() => MemberTab.open(browser, server)));
  if (!maker || !stranger) throw new Error("two tabs were opened");
  const address = await maker.create(mlpSpec({ steps: 5000 }), "maker");
  await maker.isInRingOf(1);
  const wrong = { ...address, secret: "AAAAAAAAAAAAAAAAAAAAAA" };
  await expect(stranger.join(wrong, "stranger")).rejects.toThrow(/secret/);
  await expect.poll(async () => (await maker.progress())?.notices.join(" ")).toMatch(/secret/);
  await expect(stranger.join({ ...address, secret: "" }, "stranger")).rejects.toThrow(/secret/);
  expect((await maker.progress())?.members).toBe(1);
  await Promise.all([maker.close(), stranger.close()]);
});

test("a job that nobody runs any more says so within 10 seconds", async ({ browser }) => {
  const tab = await MemberTab.open(browser, server);
  const gone = tab.join({ job: "nobodyrunsthis00", secret: "AAAAAAAAAAAAAAAAAAAAAA" }, "late");
  const limit = new Promise((_, reject) => setTimeout(() => reject(new Error("10 seconds went by")), 10_000));
  await expect(Promise.race([gone, limit])).rejects.toThrow(/[Nn]obody/);
  await tab.close();
});
