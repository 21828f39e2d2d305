import { formatGpu } from "./format";
import { gpu } from "./state";

/** This tab's GPU, or why it has none and what to do about it. */
export function GpuLine() {
  const status = gpu.value;
  return (
    <p class={status?.kind === "unavailable" ? "gpuLine unavailable" : "gpuLine"} id="gpu-line" aria-live="polite">
      {status === null && "Looking for this tab's GPU…"}
      {status?.kind === "available" && (
        <>
          This tab's GPU: <strong>{formatGpu(status.gpu)}</strong>
        </>
      )}
      {status?.kind === "unavailable" && <span data-testid="gpu-unavailable">{status.message}</span>}
    </p>
  );
}
