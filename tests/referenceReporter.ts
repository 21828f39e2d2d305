import type { Reporter, SerializedError, TestModule } from "vitest/node";

/** The error with what caused it. */
const explain = ({ message, cause }: SerializedError): string => (cause ? `${message} (${explain(cause)})` : message);

/**
 * Prints what came of the comparison with PyTorch: each failure with its operator and case, or its training run, and
 * `N passed, N failed` at the end. A file that can't run, such as for a missing folder, counts as a failure.
 */
export default class ReferenceReporter implements Reporter {
  onTestRunEnd(modules: readonly TestModule[], unhandled: readonly SerializedError[]): void {
    let passed = 0;
    const failures: string[] = [];
    for (const module of modules) {
      for (const error of module.errors()) failures.push(`${module.relativeModuleId}: ${explain(error)}`);
      for (const test of module.children.allTests()) {
        const { state, errors } = test.result();
        const isCase = test.parent.type === "suite" || !test.module.relativeModuleId.includes("operators");
        if (state === "passed" && isCase) passed += 1;
        if (state !== "passed") failures.push(`${test.fullName}: ${errors?.[0]?.message ?? state}`);
      }
    }
    for (const error of unhandled) failures.push(explain(error));
    if (passed + failures.length === 0) failures.push("Nothing was compared.");
    for (const failure of failures) console.log(`failed: ${failure}`);
    console.log(`${passed} passed, ${failures.length} failed`);
  }
}
