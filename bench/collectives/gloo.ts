import { spawnSync } from "node:child_process";
import { fileURLToPath } from "node:url";
import type { GlooResult } from "./results";

const script = fileURLToPath(new URL("gloo.py", import.meta.url));
const python = "/usr/bin/python3";

/** PyTorch's all-reduce on this machine; null where python3-torch isn't installed. @throws Error where it fails. */
export function measureGloo(quick: boolean): GlooResult | null {
  if (spawnSync(python, ["-c", "import torch.distributed"]).status !== 0) return null;
  const { status, stdout, stderr } = spawnSync(python, quick ? [script, "quick"] : [script], { encoding: "utf8" });
  if (status !== 0) throw new Error(`PyTorch's all-reduce failed:\n${stderr}`);
  return JSON.parse(stdout.trim().split("\n").at(-1) ?? "");
}
