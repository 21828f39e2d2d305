/** Why the server can't do what was asked: `message` is one sentence for the person at the terminal. */
export class ServerError extends Error {
  override readonly name = "ServerError";
}
