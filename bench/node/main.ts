import { argv, exit, stderr, stdout } from "node:process";
import { messageOf } from "../../src/base/messageOf";
import { type BenchOptions, nodeHelp, readOptions } from "../options";
import { serveBench } from "../server";
import { report } from "./report";
import { installWebGpu } from "./webgpu";

const progress = (text: string) => void stderr.write(`${text}\n`);

async function measure({ quick, parts }: BenchOptions): Promise<void> {
  const server = await serveBench();
  try {
    const loaded = await server.load("/bench/node/measure.ts");
    const measureInNode: typeof import("./measure").measureInNode = loaded.measureInNode;
    stdout.write(`\n${report(await measureInNode(server.url, quick, parts, progress))}`);
  } finally {
    await server.close();
  }
}

async function main(): Promise<number> {
  let options: BenchOptions | null;
  try {
    options = readOptions(argv.slice(2));
  } catch (error) {
    progress(messageOf(error));
    return 2;
  }
  if (options === null) {
    stdout.write(`${nodeHelp}\n`);
    return 0;
  }
  try {
    await installWebGpu();
    await measure(options);
    return 0;
  } catch (error) {
    progress(messageOf(error));
    return 1;
  }
}

exit(await main());
