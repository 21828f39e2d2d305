import { parseArgs } from "node:util";
import type { AdapterChoice } from "../src/cli/tabs";
import { operatorGroups } from "./operators/rows";
import { type EngineName, engineNames } from "./training/engine";
import { workloadNames } from "./training/workloads";

const parts = [...operatorGroups, ...workloadNames, "memory", "firefox", "all-reduce"] as const;
export type Part = (typeof parts)[number];

export interface BenchOptions {
  readonly quick: boolean;
  readonly adapter: AdapterChoice;
  readonly parts: readonly Part[];
  readonly engines: readonly EngineName[];
}

export const help = `npm run bench -- [options]

Measures Ringlet in a browser on this machine, prints tables, and writes bench/results.json and the tables of
docs/performance.md.

  --quick              few repetitions: to see that it runs. Prints, and writes nothing.
  --adapter CHOICE     auto (default), hardware or software
  --only LIST          of ${parts.slice(0, 7).join(", ")},
                       ${parts.slice(7).join(", ")}. Prints, and writes nothing.
  --engines LIST       of ringlet,tensorflow,jax (default all). Prints, and writes nothing.
  --help               this text`;

export const nodeHelp = `npm run bench:node -- [options]

Measures Ringlet's own kernels and steps in Node over Dawn, on the machine's GPU, and prints tables.

  --quick              few repetitions: to see that it runs
  --only LIST          of ${[...operatorGroups, ...workloadNames].join(", ")}
  --help               this text`;

const adapters: readonly AdapterChoice[] = ["auto", "hardware", "software"];

/** @throws a sentence about an unknown option or an impossible value; null when help is asked for. */
export function readOptions(args: readonly string[]): BenchOptions | null {
  const { values } = parseArgs({
    args: [...args],
    options: {
      quick: { type: "boolean", default: false },
      adapter: { type: "string", default: "auto" },
      only: { type: "string", default: parts.join(",") },
      engines: { type: "string", default: engineNames.join(",") },
      help: { type: "boolean", default: false },
    },
  });
  if (values.help) return null;
  return {
    quick: values.quick,
    adapter: oneOf("--adapter", values.adapter, adapters),
    parts: listOf("--only", values.only, parts),
    engines: listOf("--engines", values.engines, engineNames),
  };
}

/** A run of everything in full, which is what may be written down. */
export const isComplete = ({ quick, parts: asked, engines }: BenchOptions) =>
  !quick && asked.length === parts.length && engines.length === engineNames.length;

const listOf = <T extends string>(option: string, value: string, choices: readonly T[]): T[] => [
  ...new Set(value.split(",").map((name) => oneOf(option, name, choices))),
];

function oneOf<T extends string>(option: string, value: string, choices: readonly T[]): T {
  const found = choices.find((choice) => choice === value);
  if (found === undefined) throw new Error(`${option} takes ${choices.join(", ")}, not ${value}.`);
  return found;
}
