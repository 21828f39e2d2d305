import { writeFile } from "node:fs/promises";
import { Command, Option } from "commander";
import type { Page } from "playwright-core";
import { messageOf } from "../base/messageOf";
import type { JobResult } from "../job/result";
import { defaultSpec, type JobSpec, type ModelName, modelNames, parseJobSpec, recipeNames } from "../job/spec";
import { startServer } from "../server/server";
import type { HeadlessProgress } from "../worker/headless";
import { iceServersFromEnvironment, integerFrom, numberFrom } from "./options";
import { ProgressBar } from "./progressBar";
import type { AdapterChoice, HeadlessBrowser } from "./tabs";
import { UserError } from "./userError";

interface TrainOptions {
  readonly model: ModelName;
  readonly peers: number;
  readonly steps?: number;
  readonly batch?: number;
  readonly optimizer?: JobSpec["optimizer"]["name"];
  readonly learningRate?: number;
  readonly momentum?: number;
  readonly weightDecay?: number;
  readonly validateEvery?: number;
  readonly seed?: number;
  readonly json?: string;
  readonly audit?: string;
  readonly adapter: AdapterChoice;
}

/** `ringlet train RECIPE`: a job of N headless tabs on this machine. */
export function trainCommand(): Command {
  return new Command("train")
    .description("Train a recipe in headless tabs of the installed Chromium or Chrome, without a display.")
    .argument("<recipe>", `what to train: ${recipeNames.join(", ")}`)
    .addOption(new Option("--model <name>", "the model").choices(modelNames).default("cnn"))
    .option("--peers <n>", "headless tabs that train together", integerFrom("--peers", 1, 64), 1)
    .option("--steps <n>", "optimizer steps", integerFrom("--steps", 1))
    .option("--batch <n>", "samples of a global batch, shared out among the peers", integerFrom("--batch", 1))
    .addOption(new Option("--optimizer <name>", "the optimizer").choices(["sgd", "adam", "adamw"]))
    .option("--learning-rate <x>", "the optimizer's learning rate", numberFrom("--learning-rate", 0))
    .option("--momentum <x>", "SGD's momentum", numberFrom("--momentum", 0))
    .option("--weight-decay <x>", "the optimizer's weight decay", numberFrom("--weight-decay", 0))
    .option(
      "--validate-every <n>",
      "validate after every so many steps; 0: at the end only",
      integerFrom("--validate-every", 0),
    )
    .option("--seed <n>", "decides weights and batches", integerFrom("--seed", 0))
    .option("--json <file>", "write the result as JSON")
    .option("--audit <file>", "write one JSON line a step and member: {step, member, rank, samples}")
    .addOption(
      new Option("--adapter <kind>", "the WebGPU adapter that the tabs use")
        .choices(["auto", "hardware", "software"])
        .default("auto"),
    )
    .addHelpText(
      "after",
      "\nSteps, batch, optimizer and its options default to the recipe's own for the model.\n\n" +
        "Example:\n  ringlet train mnist --model cnn --peers 2 --steps 200 --batch 256 --optimizer sgd \\\n" +
        "    --learning-rate 0.05 --momentum 0.9 --seed 1 --json out.json",
    )
    .action(async (recipe: string, options: TrainOptions) => {
      const spec = specFrom(recipe, options);
      await train(spec, options);
    });
}

function specFrom(recipe: string, options: TrainOptions): JobSpec {
  if (!recipeNames.some((name) => name === recipe)) {
    throw new UserError(`There is no recipe "${recipe}"; there is: ${recipeNames.join(", ")}.`, 2);
  }
  const defaults = defaultSpec(options.model);
  const { optimizer = defaults.optimizer.name } = options;
  if (options.momentum !== undefined && optimizer !== "sgd") {
    throw new UserError(`--momentum is SGD's; ${optimizer} has none.`, 2);
  }
  const base = optimizer === defaults.optimizer.name ? defaults.optimizer : { name: optimizer };
  return checkedSpec({
    ...defaults,
    batch: options.batch ?? defaults.batch,
    steps: options.steps ?? defaults.steps,
    seed: options.seed ?? defaults.seed,
    validateEvery: options.validateEvery ?? defaults.validateEvery,
    optimizer: {
      ...base,
      ...(options.learningRate === undefined ? {} : { learningRate: options.learningRate }),
      ...(options.momentum === undefined ? {} : { momentum: options.momentum }),
      ...(options.weightDecay === undefined ? {} : { weightDecay: options.weightDecay }),
    },
  });
}

/** A value that no option checks by itself, such as a batch beyond the bound, is wrong usage too. */
function checkedSpec(spec: object): JobSpec {
  try {
    return parseJobSpec(spec);
  } catch (error) {
    throw new UserError(messageOf(error), 2);
  }
}

async function train(spec: JobSpec, options: TrainOptions): Promise<void> {
  const server = await startServer({ port: 0, httpsPort: null, stunPort: 0, iceServers: iceServersFromEnvironment() });
  let browser: HeadlessBrowser | null = null;
  try {
    const { openBrowser } = await import("./tabs");
    browser = await openBrowser(options.adapter, server.localUrl);
    const pages = await openMembers(browser, `${server.localUrl}headless.html`, options.peers);
    const [first, ...others] = pages;
    if (!first) throw new UserError("--peers must be at least 1.", 2);
    console.log(
      `Training ${spec.recipe} (${spec.model}) for ${spec.steps} steps of ${spec.batch} samples in ${options.peers} ` +
        `${options.peers === 1 ? "tab" : "tabs"} on the ${browser.adapter} adapter.`,
    );
    const address = await first.evaluate(([jobSpec, waitFor]) => ringletTab.create(jobSpec, "peer 0", waitFor), [
      spec,
      options.peers,
    ] as const);
    await Promise.all(
      others.map((page, i) =>
        page.evaluate(([link, name]) => ringletTab.join(link, name), [address, `peer ${i + 1}`] as const),
      ),
    );
    await followToTheEnd(pages);
    await report(spec, pages, options);
  } finally {
    await browser?.close();
    await server.close();
  }
}

async function openMembers(browser: HeadlessBrowser, url: string, count: number): Promise<Page[]> {
  const pages = await Promise.all(Array.from({ length: count }, () => browser.openTab(url)));
  await Promise.all(pages.map((page) => page.waitForFunction(() => "ringletTab" in globalThis)));
  return pages;
}

/** Polls every tab until all are done, showing the first tab's progress and everybody's notices. */
async function followToTheEnd(pages: readonly Page[]): Promise<void> {
  const bar = new ProgressBar();
  const told = new Set<string>();
  for (;;) {
    const all = await Promise.all(pages.map((page) => page.evaluate(() => ringletTab.progress())));
    all.forEach((progress, rank) => {
      if (progress?.phase.kind === "failed") throw new UserError(`Peer ${rank} failed: ${progress.phase.message}`);
      for (const notice of progress?.notices ?? []) {
        const line = `[${rank}] ${notice}`;
        if (!told.has(line)) bar.print(line);
        told.add(line);
      }
    });
    const [first] = all;
    if (first) bar.show(first.steps === 0 ? 1 : first.step / first.steps, statusText(first));
    if (all.every((progress) => progress && isOver(progress))) break;
    await new Promise((resolve) => setTimeout(resolve, 200));
  }
  bar.end();
}

const isOver = ({ phase }: HeadlessProgress): boolean =>
  phase.kind === "finished" || phase.kind === "stopped" || phase.kind === "left";

function statusText({ phase, step, steps, loss, samplesPerSecond, members }: HeadlessProgress): string {
  if (phase.kind === "preparing") return `${phase.what}`;
  if (phase.kind !== "training" && !(phase.kind === "finished")) return phase.kind;
  const lossText = loss === null ? "" : `  loss ${loss.toFixed(4)}`;
  return `step ${step}/${steps}${lossText}  ${Math.round(samplesPerSecond)} samples/s  ${members} in the ring`;
}

async function report(spec: JobSpec, pages: readonly Page[], options: TrainOptions): Promise<void> {
  const results = await Promise.all(pages.map((page) => page.evaluate(() => ringletTab.result())));
  const [first] = results;
  if (!first) return;
  if (options.audit !== undefined) {
    const audits = await Promise.all(pages.map((page) => page.evaluate(() => ringletTab.audit())));
    const lines = audits.flat().sort((a, b) => a.step - b.step || a.rank - b.rank);
    await writeFile(options.audit, lines.map((line) => `${JSON.stringify(line)}\n`).join(""));
  }
  if (options.json !== undefined) await writeFile(options.json, `${JSON.stringify(summary(spec, results), null, 2)}\n`);
  const { validation, samplesPerSecond, stepMilliseconds, losses } = first;
  console.log(
    `Loss ${losses.at(-1)?.toFixed(4) ?? "-"} after ${first.steps} steps` +
      (validation
        ? `; validation loss ${validation.loss.toFixed(4)}, accuracy ${(validation.accuracy * 100).toFixed(2)}%`
        : "") +
      `; ${Math.round(samplesPerSecond)} samples/s, ${stepMilliseconds.median.toFixed(0)} ms a step (p95 ${stepMilliseconds.p95.toFixed(0)}).`,
  );
}

const summary = (spec: JobSpec, results: readonly JobResult[]) => {
  const [first] = results;
  return {
    recipe: spec.recipe,
    spec,
    steps: first?.steps ?? 0,
    losses: first?.losses ?? [],
    validation: first?.validation ?? null,
    members: results.map((result) => result.self).sort((a, b) => (a.rank ?? Infinity) - (b.rank ?? Infinity)),
    samplesPerSecond: first?.samplesPerSecond ?? 0,
    stepMilliseconds: first?.stepMilliseconds ?? { median: 0, p95: 0 },
  };
};
