import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";

setFlagsFromString("--expose-gc");
const collectGarbage: () => void = runInNewContext("gc");

/** Bytes of the array buffers that are really in use, in Node. */
export function heldBytes(): number {
  // Memory that the first pass finds unused is given back before the second.
  collectGarbage();
  collectGarbage();
  return process.memoryUsage().arrayBuffers;
}
