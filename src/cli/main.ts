import { Command, CommanderError } from "commander";
import { unknownNames } from "../distributed/environmentTable";
import { ServerError } from "../server/errors";
import { packageVersion } from "../server/packageRoot";
import { runCommand } from "./run";
import { serveCommand } from "./serve";
import { simulateCommand } from "./simulate";
import { trainCommand } from "./train";
import { UserError } from "./userError";

const usageExitCode = 2;

const program = new Command("ringlet")
  .description("Train neural networks across browser tabs.")
  .version(packageVersion(), "--version", "print the version")
  .enablePositionalOptions();
const commands = [serveCommand(), trainCommand(), runCommand(), simulateCommand()];
for (const command of commands) program.addCommand(command);
for (const command of [program, ...commands])
  command
    .exitOverride()
    .showSuggestionAfterError()
    .configureOutput({ outputError: (text, write) => write(asSentence(text)) });

/** commander's "error: unknown option '--foo'\n(Did you mean --bar?)" as one sentence. */
function asSentence(text: string): string {
  const words = text
    .replace(/^error: /, "")
    .replace(/\s+/g, " ")
    .replace(/\. ([A-Z])/g, (_, letter: string) => `, ${letter.toLowerCase()}`)
    .replace(/\.? ?$/, "");
  const [what = "", suggestion] = words.split(" (Did you mean ");
  const hint = suggestion ? `did you mean ${suggestion.replace(/\?\)$/, "")}?` : "see --help.";
  return `${what.charAt(0).toUpperCase()}${what.slice(1)}: ${hint}\n`;
}

/** Prints what went wrong, if it isn't printed already, and gives the exit code for it. */
function report(error: unknown): number {
  // commander has printed its own errors, and help and version, whose code is 0.
  if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : usageExitCode;
  if (error instanceof UserError || error instanceof ServerError) {
    console.error(error.message);
    return error instanceof UserError ? error.exitCode : 1;
  }
  console.error(error);
  return 1;
}

// `ringlet --help | head -1` closes the pipe while there is more to write, which nobody misses.
process.stdout.on("error", (error: NodeJS.ErrnoException) => {
  if (error.code !== "EPIPE") throw error;
  process.exit();
});

for (const sentence of unknownNames(Object.keys(process.env))) console.error(sentence);

try {
  if (process.argv.length <= 2) program.outputHelp();
  else await program.parseAsync();
} catch (error) {
  process.exitCode = report(error);
}
