import { Command } from "commander";
import { banner } from "../server/banner";
import { defaultPorts, type ServerOptions, startServer } from "../server/server";
import { iceServersFromEnvironment, portFrom } from "./options";

interface ServeOptions {
  readonly port: number;
  readonly httpsPort: number;
  readonly stunPort: number;
  readonly host?: string;
  readonly dev?: true;
}

/** `ringlet serve`: the page, the data set, signaling and STUN, until Ctrl+C. */
export function serveCommand(): Command {
  return new Command("serve")
    .description("Serve the page, the data set and the signaling, for this machine and others on its network.")
    .option("--port <n>", "HTTP for this machine only; 0 for any free port", portFrom("--port"), defaultPorts.http)
    .option("--https-port <n>", "HTTPS for other machines", portFrom("--https-port"), defaultPorts.https)
    .option("--stun-port <n>", "STUN on UDP", portFrom("--stun-port"), defaultPorts.stun)
    .option("--host <address>", "serve other machines at this address of this machine only (default: at all of them)")
    .option("--dev", "serve the pages from the sources, with hot reload (in a clone of the repository)")
    .addHelpText(
      "after",
      `
Environment:
  RINGLET_ICE_SERVERS  STUN and TURN servers for the tabs, as RTCPeerConnection takes them:
                       '[{"urls": "turn:turn.example.org", "username": "me", "credential": "secret"}]'
  RINGLET_CACHE        where the certificate and the compressed data set are kept
                       (default: ringlet in the user's cache folder)

Other machines get HTTPS, since browsers offer WebGPU in secure contexts only. The certificate is made at the first
start; a browser warns of it once.

Examples:
  ringlet serve
  ringlet serve --port 8080 --https-port 8443`,
    )
    .action(async ({ dev, host, port, httpsPort, stunPort }: ServeOptions) => {
      const options: ServerOptions = {
        port,
        httpsPort,
        stunPort,
        ...(host === undefined ? {} : { host }),
        source: { kind: dev ? "development" : "built" },
        iceServers: iceServersFromEnvironment(),
      };
      const server = await startServer(options);
      process.stdout.write(banner(server, process.stdout.isTTY));
      await new Promise<void>((stop) => {
        process.once("SIGINT", stop);
        process.once("SIGTERM", stop);
      });
      await server.close();
    });
}
