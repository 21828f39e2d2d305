import { argv, exit, stderr, stdout } from "node:process";
import { messageOf } from "../../src/base/messageOf";
import { type BenchOptions, nodeHelp, readOptions } from "../options";
import { serveBench } from "../server";
import { report } from "./report";
import { installWebGpu } from "./webgpu";

const progress = (text: string) => void stderr.write(`${text}\n`);

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
  installWebGpu();
  if (!(await navigator.gpu.requestAdapter({ powerPreference: "high-performance" }))) {
    progress(
      "Dawn finds no Vulkan, Metal or Direct3D driver on this machine, so there is nothing to measure. " +
        "Install the GPU's driver (on Linux with its Vulkan loader, libvulkan1), or name one in VK_ICD_FILENAMES.",
    );
    return 1;
  }
  const server = await serveBench();
  try {
    const loaded = await server.load("/bench/node/measure.ts");
    const measureInNode: typeof import("./measure").measureInNode = loaded.measureInNode;
    stdout.write(`\n${report(await measureInNode(server.url, options.quick, options.parts, progress))}`);
    return 0;
  } catch (error) {
    progress(messageOf(error));
    return 1;
  } finally {
    await server.close();
  }
}

exit(await main());
