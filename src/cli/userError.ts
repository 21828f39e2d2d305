/** Ends the command with its message, one sentence, and this exit code: 1 when something failed, 2 for wrong usage. */
export class UserError extends Error {
  override readonly name = "UserError";

  constructor(
    message: string,
    readonly exitCode: 1 | 2 = 1,
  ) {
    super(message);
  }
}
