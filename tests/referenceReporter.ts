import type { Reporter, SerializedError, TestModule } from "vitest/node";

/** The error with what caused it. */
const describe = ({ message, cause }: SerializedError): string => (cause ? `${message} (${describe(cause)})` : message);

/**
 * Prints what came of the comparison with PyTorch: each failure with its operator and case, or its training run, and
 * `N passed, N failed` at the end. A file that can't run, such as for a missing folder, counts as a failure.
 */
export default class ReferenceReporter implements Reporter {
  onTestRunEnd(modules: readonly TestModule[], unhandled: readonly SerializedError[]): void {
    let passed = 0;
    const failures: string[] = [];
    for (const module of modules) {
      for (const error of module.errors()) failures.push(`${module.relativeModuleId}: ${describe(error)}`);
      for (const test of module.children.allTests()) {
        const { state, errors } = test.result();
        const isCase = test.parent.type === "suite" || !test.module.relativeModuleId.includes("operators");
        if (state === "passed" && isCase) passed += 1;
        if (state !== "passed") failures.push(`${test.fullName}: ${errors?.[0]?.message ?? state}`);
      }
    }
    for (const error of unhandled) failures.push(describe(error));
    for (const failure of failures) console.log(`failed: ${failure}`);
    if (passed + failures.length === 0) failures.push("nothing was compared");
    console.log(`${passed} passed, ${failures.length} failed`);
  }
}
