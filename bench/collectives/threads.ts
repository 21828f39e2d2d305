import { readdirSync, readFileSync } from "node:fs";
import { platform } from "node:os";
import { statFields, ticksPerSecond } from "../machine";

/** CPU seconds of a process's descendants so far, by the names of their threads. Null where there is no /proc. */
export function cpuSecondsByThread(root: number): ReadonlyMap<string, number> | null {
  if (platform() !== "linux") return null;
  const parents = new Map<number, number>();
  for (const name of readdirSync("/proc")) {
    const fields = /^\d+$/.test(name) ? statFields(name) : null;
    if (fields) parents.set(Number(name), fields.parent);
  }
  const descends = (id: number): boolean => {
    const parent = parents.get(id);
    return parent !== undefined && (parent === root || descends(parent));
  };
  const seconds = new Map<string, number>();
  for (const id of parents.keys()) if (descends(id)) addThreads(id, seconds);
  return seconds;
}

/** What the thread of a page is called here: it has the name of its process. */
export const pageThread = "page";

function addThreads(id: number, seconds: Map<string, number>): void {
  let threads: string[];
  let isRenderer: boolean;
  try {
    threads = readdirSync(`/proc/${id}/task`);
    isRenderer = readFileSync(`/proc/${id}/cmdline`, "utf8").includes("--type=renderer");
  } catch {
    return;
  }
  for (const thread of threads) {
    let text: string;
    try {
      text = readFileSync(`/proc/${id}/task/${thread}/stat`, "utf8");
    } catch {
      continue;
    }
    const isPage = isRenderer && thread === String(id);
    const name = isPage ? pageThread : text.slice(text.indexOf("(") + 1, text.lastIndexOf(")"));
    const fields = text.slice(text.lastIndexOf(")") + 2).split(" ");
    const ticks = Number(fields[11]) + Number(fields[12]);
    seconds.set(name, (seconds.get(name) ?? 0) + ticks / ticksPerSecond);
  }
}
