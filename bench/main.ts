import { argv, exit, stderr, stdout } from "node:process";
import { openBrowser } from "../src/cli/tabs";
import { help, readOptions } from "./options";
import { serveBench } from "./server";
import { measureTraining } from "./training/measure";

const options = (() => {
  try {
    return readOptions(argv.slice(2));
  } catch (error) {
    stderr.write(`${error instanceof Error ? error.message : String(error)}\n`);
    return exit(2);
  }
})();
if (options === null) {
  stdout.write(`${help}\n`);
  exit(0);
}
const progress = (text: string) => void stderr.write(`${text}\n`);
const server = await serveBench();
try {
  const browser = await openBrowser(options.adapter, `${server.url}/bench/training.html`);
  try {
    const training = await measureTraining(browser, server.url, options.quick, options.engines, progress);
    stdout.write(JSON.stringify(training, null, 1));
  } finally {
    await browser.close();
  }
} finally {
  await server.close();
}
