import { inject } from "vitest";
import { installWebGpu } from "../../bench/node/webgpu";

await installWebGpu();

const origin = inject("referenceOrigin");
const fetchAnywhere = globalThis.fetch;
/** Paths are those of the reference's server, as in a page. */
globalThis.fetch = (input, init) =>
  fetchAnywhere(typeof input === "string" && input.startsWith("/") ? `${origin}${input}` : input, init);
