import { readdirSync, readFileSync } from "node:fs";
import { availableParallelism, cpus, platform, release, totalmem } from "node:os";
import { pid } from "node:process";

export interface Machine {
  readonly cpu: string;
  readonly cores: number;
  readonly memoryGiB: number;
  readonly system: string;
  readonly node: string;
}

export function describeMachine(): Machine {
  return {
    cpu: cpus()[0]?.model ?? "unknown",
    cores: availableParallelism(),
    memoryGiB: Math.round(totalmem() / 2 ** 30),
    system: `${platform()} ${release()}`,
    node: process.version,
  };
}

/** Linux counts a process's time in these: USER_HZ, which is 100 on every architecture that has Chromium. */
export const ticksPerSecond = 100;

/**
 * CPU seconds (user and system) that a process and all its descendants have used so far. Null where there is no /proc.
 * A descendant that ended counts if its parent has waited for it.
 */
export function cpuSecondsOfTree(root: number): number | null {
  if (platform() !== "linux") return null;
  const processes = new Map<number, { parent: number; ticks: number }>();
  for (const name of readdirSync("/proc")) {
    if (!/^\d+$/.test(name)) continue;
    const fields = statFields(name);
    if (fields) processes.set(Number(name), fields);
  }
  const belongs = (id: number): boolean => id === root || (processes.has(id) && belongs(processes.get(id)!.parent));
  let ticks = 0;
  for (const [id, entry] of processes) if (belongs(id)) ticks += entry.ticks;
  return ticks / ticksPerSecond;
}

/** From /proc/PID/stat, as proc(5) numbers its fields; null when the process has just ended. */
export function statFields(id: string): { parent: number; ticks: number } | null {
  let text: string;
  try {
    text = readFileSync(`/proc/${id}/stat`, "utf8");
  } catch {
    return null;
  }
  // The command's name, in parentheses, may hold spaces; the state, field 3, follows it.
  const fields = text.slice(text.lastIndexOf(")") + 2).split(" ");
  const field = (number: number) => Number(fields[number - 3]);
  return { parent: field(4), ticks: field(14) + field(15) + field(16) + field(17) };
}

/**
 * Begins to watch what other programs take of the processor. The function returned gives the cores that they have kept
 * busy since, on average; null where there is no /proc. To be called while what this program started still runs.
 */
export function watchOtherPrograms(): () => number | null {
  const start = performance.now();
  const before = otherCpuSeconds();
  return () => {
    const after = otherCpuSeconds();
    if (before === null || after === null) return null;
    return Math.max(0, after - before) / ((performance.now() - start) / 1000);
  };
}

function otherCpuSeconds(): number | null {
  const own = cpuSecondsOfTree(pid);
  if (own === null) return null;
  // Field by field: user, nice, system, idle, iowait, irq, softirq, steal.
  const fields = readFileSync("/proc/stat", "utf8").split("\n", 1)[0]!.trim().split(/\s+/).slice(1, 9).map(Number);
  const busy = fields.reduce((total, ticks, index) => (index === 3 || index === 4 ? total : total + ticks), 0);
  return busy / ticksPerSecond - own;
}
