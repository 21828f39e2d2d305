import { readdirSync, readFileSync } from "node:fs";
import { availableParallelism, cpus, loadavg, platform, release, totalmem } from "node:os";

export interface Machine {
  readonly cpu: string;
  readonly cores: number;
  readonly memoryGiB: number;
  readonly system: string;
  readonly node: string;
  /** Runnable processes in the last minute, when the run began: what others were doing on this machine. */
  readonly loadAverage: number;
}

export function describeMachine(): Machine {
  return {
    cpu: cpus()[0]?.model ?? "unknown",
    cores: availableParallelism(),
    memoryGiB: Math.round(totalmem() / 2 ** 30),
    system: `${platform()} ${release()}`,
    node: process.version,
    loadAverage: loadavg()[0] ?? 0,
  };
}

/** Linux counts a process's time in these: USER_HZ, which is 100 on every architecture that has Chromium. */
const ticksPerSecond = 100;

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
function statFields(id: string): { parent: number; ticks: number } | null {
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
