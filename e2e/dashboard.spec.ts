import { mkdir, readFile } from "node:fs/promises";
import { chromium, expect, type Page, test } from "@playwright/test";
import { softwareGpuArguments } from "../scripts/browser.mjs";
import { readSafetensors } from "../src/data/safetensors";
import { type RunningServer, startServer } from "../src/server/server";
import { startTestServer } from "./job";
import { mainThreadTasks } from "./mainThread";

let server: RunningServer;
test.beforeEach(async () => {
  server = await startTestServer();
});
test.afterEach(async ({ browser }) => {
  // A tab that goes on training would take the processor from the next test.
  for (const context of browser.contexts()) await context.close();
  await server.close();
});

interface Choice {
  readonly model: "cnn" | "mlp";
  readonly batch: number;
  readonly steps: number;
}

const start = async (page: Page, values: Choice, url = server.localUrl) => {
  await page.goto(url);
  await page.locator(`input[name="model"][value="${values.model}"]`).check();
  await page.getByLabel("Batch size", { exact: true }).fill(String(values.batch));
  await page.getByLabel("Steps", { exact: true }).fill(String(values.steps));
  await page.getByTestId("start").click();
  await expect(page.getByTestId("phase")).toHaveAttribute("data-phase", "training", { timeout: 60_000 });
};
const inviteLink = async (page: Page): Promise<string> => {
  await page.getByTestId("invite").click();
  const link = await page.getByTestId("invite-link").inputValue();
  await page.keyboard.press("Escape");
  // The link names the address for other machines; here both tabs are on this one.
  const { search, hash } = new URL(link);
  return `${server.localUrl}${search}${hash}`;
};
const stepOf = async (page: Page) => Number(await page.getByTestId("step").getAttribute("data-value"));
const ranks = (page: Page) => page.locator("[data-member-id][data-rank]");

test("one press trains; a second tab joins by the link; pause, resume, leave, stop and downloads work", async ({
  browser,
}) => {
  const context = await browser.newContext({ viewport: { width: 1280, height: 800 } });
  const maker = await context.newPage();
  await start(maker, { model: "mlp", batch: 64, steps: 2000 });
  const link = await inviteLink(maker);
  expect(new URL(link).hash.length).toBeGreaterThan(20);

  const guest = await (await browser.newContext()).newPage();
  await guest.goto(link);
  await expect(guest.getByTestId("join")).toBeVisible({ timeout: 30_000 });
  await expect(guest.locator("body")).toContainText("MNIST");
  await expect(ranks(guest)).toHaveCount(1);
  await guest.getByTestId("join").click();
  await expect(ranks(maker)).toHaveCount(2, { timeout: 60_000 });
  await expect(ranks(guest)).toHaveCount(2);

  await guest.getByTestId("pause").click();
  await expect(maker.getByTestId("phase")).toHaveAttribute("data-phase", "paused");
  const pausedAt = await stepOf(maker);
  await maker.getByTestId("resume").click();
  await expect.poll(() => stepOf(maker)).toBeGreaterThan(pausedAt);

  await guest.getByTestId("leave").click();
  await expect(ranks(maker)).toHaveCount(1);
  const leftAt = await stepOf(maker);
  await expect.poll(() => stepOf(maker)).toBeGreaterThan(leftAt);

  await maker.getByTestId("stop").click();
  await expect(maker.getByTestId("phase")).toHaveAttribute("data-phase", "stopped");
  const [weights] = await Promise.all([maker.waitForEvent("download"), maker.getByTestId("download-weights").click()]);
  expect(weights.suggestedFilename()).toMatch(/\.safetensors$/);
  const { tensors } = readSafetensors(new Uint8Array(await readFile(await weights.path())));
  expect([...tensors.keys()].sort()).toEqual(["1.bias", "1.weight", "3.bias", "3.weight", "5.bias", "5.weight"]);
  expect(tensors.get("1.weight")?.shape).toEqual([128, 784]);
  const [metrics] = await Promise.all([maker.waitForEvent("download"), maker.getByTestId("download-metrics").click()]);
  const lines = (await readFile(await metrics.path(), "utf8")).trim().split("\n");
  expect(lines[0]).toMatch(/^step,loss/);
  expect(lines.length - 1).toBe(await stepOf(maker));
});

test("the invitation leads another machine to HTTPS, where it may use its GPU, and into the same ring", async ({
  browser,
}) => {
  const shared = await startServer({ port: 0, httpsPort: 0, stunPort: 0, host: "127.0.0.1" });
  try {
    const maker = await (await browser.newContext()).newPage();
    await start(maker, { model: "mlp", batch: 64, steps: 5000 }, shared.localUrl);
    await maker.getByTestId("invite").click();
    const link = await maker.getByTestId("invite-link").inputValue();
    expect(link.startsWith(shared.networkUrls[0] ?? "https")).toBe(true);
    // What a person does who clicks through the browser's warning of a certificate that the server made itself.
    const guest = await (await browser.newContext({ ignoreHTTPSErrors: true })).newPage();
    await guest.goto(link);
    await guest.getByTestId("join").click();
    await expect(ranks(maker)).toHaveCount(2, { timeout: 60_000 });
    const joinedAt = await stepOf(guest);
    await expect.poll(() => stepOf(guest), { timeout: 30_000 }).toBeGreaterThan(joinedAt + 3);
    await Promise.all([guest.close(), maker.close()]);
  } finally {
    await shared.close();
  }
});

test("reloading the maker's tab doesn't end the job: it comes back in by itself", async ({ browser }) => {
  const maker = await (await browser.newContext()).newPage();
  await start(maker, { model: "mlp", batch: 64, steps: 3000 });
  const guest = await (await browser.newContext()).newPage();
  await guest.goto(await inviteLink(maker));
  await guest.getByTestId("join").click();
  await expect(ranks(guest)).toHaveCount(2, { timeout: 60_000 });
  const before = await stepOf(guest);
  await maker.reload();
  await expect.poll(() => stepOf(guest), { timeout: 60_000 }).toBeGreaterThan(before + 3);
  await expect(ranks(guest)).toHaveCount(2, { timeout: 60_000 });
  await expect(ranks(maker)).toHaveCount(2, { timeout: 60_000 });
  await guest.getByTestId("stop").click();
  await expect(maker.getByTestId("phase")).toHaveAttribute("data-phase", "stopped");
});

test("no task takes over 50 ms of the main thread's time in a training minute", async ({ browser }) => {
  const page = await (await browser.newContext({ viewport: { width: 1280, height: 800 } })).newPage();
  await start(page, { model: "mlp", batch: 64, steps: 100_000 });
  const before = await stepOf(page);
  const tasks = await mainThreadTasks(browser, page, 60_000);
  expect(await stepOf(page)).toBeGreaterThan(before);
  // The page draws at least a few times a second.
  expect(tasks.length).toBeGreaterThan(200);
  expect(tasks.filter((milliseconds) => milliseconds > 50)).toEqual([]);
});

test("the page fits a phone, and what it shows is kept as a picture", async ({ browser }, info) => {
  const context = await browser.newContext({ viewport: { width: 1280, height: 800 } });
  const maker = await context.newPage();
  await start(maker, { model: "mlp", batch: 64, steps: 400 });
  const phone = await (await browser.newContext({ viewport: { width: 390, height: 844 }, hasTouch: true })).newPage();
  await phone.goto(await inviteLink(maker));
  await phone.getByTestId("join").tap();
  await expect(ranks(phone)).toHaveCount(2, { timeout: 60_000 });
  const joinedAt = await stepOf(phone);
  // The picture in the README shows a job that has come some way.
  const toGo = process.env.RINGLET_PICTURES ? 150 : 20;
  await expect.poll(() => stepOf(phone), { timeout: 120_000 }).toBeGreaterThan(joinedAt + toGo);
  const overflow = await phone.evaluate(
    () => document.documentElement.scrollWidth - document.documentElement.clientWidth,
  );
  expect(overflow).toBe(0);
  for (const id of ["pause", "leave", "stop", "invite"]) {
    const box = await phone.getByTestId(id).boundingBox();
    expect(box?.height, `the height of ${id} under a thumb`).toBeGreaterThanOrEqual(36);
  }
  const folder = process.env.RINGLET_PICTURES ?? info.outputDir;
  await mkdir(folder, { recursive: true });
  await maker.screenshot({ path: `${folder}/dashboard.png`, fullPage: true });
  await phone.screenshot({ path: `${folder}/dashboard-phone.png`, fullPage: true });
});

test("a link without its secret, or with a wrong one, and a job that is gone each say so on the page", async ({
  browser,
}) => {
  const page = await (await browser.newContext()).newPage();
  await page.goto(`${server.localUrl}?job=0123456789abcdef`);
  await expect(page.getByTestId("error")).toContainText(/secret/i);
  await page.goto("about:blank");
  await page.goto(`${server.localUrl}?job=0123456789abcdef#AAAAAAAAAAAAAAAAAAAAAA`);
  await expect(page.getByTestId("error")).toContainText(/nobody/i, { timeout: 10_000 });
});

test("a tab without WebGPU says why and what to do, and can watch", async ({ browser }) => {
  const maker = await (await browser.newContext()).newPage();
  await start(maker, { model: "mlp", batch: 64, steps: 5000 });
  const link = await inviteLink(maker);
  // Chromium without its switches for WebGPU has no adapter on a machine without a GPU.
  const other = await chromium.launch({
    executablePath: process.env.RINGLET_BROWSER ?? "",
    args: softwareGpuArguments.filter((argument) => !argument.includes("webgpu")),
  });
  const page = await other.newPage();
  await page.goto(link);
  await expect(page.getByTestId("gpu-unavailable")).toContainText(/GPU.*settings/, { timeout: 30_000 });
  await expect(page.getByTestId("join")).toBeDisabled();
  const seen = await stepOf(page);
  await expect.poll(() => stepOf(page), { timeout: 30_000 }).toBeGreaterThan(seen);
  await other.close();
});
