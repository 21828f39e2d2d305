import { formatCount, formatNumber, modelLabels, optimizerLabels, plural } from "./format";
import { GpuLine } from "./GpuLine";
import { join } from "./session";
import { busy, gpu, phase, ring, snapshot } from "./state";

/** For those that opened a link: what the job is, who runs it, and the button that lends this tab's GPU. */
export function JoinPanel() {
  const now = snapshot.value;
  if (now === null || phase.value.kind !== "watching") return null;
  const { spec } = now;
  const unable = gpu.value?.kind === "unavailable";
  const joining = busy.value === "join";
  return (
    <section class="joinPanel" aria-labelledby="join-title">
      <div>
        <h2 id="join-title">{now.maker} invites you to train this model together</h2>
        <p>
          {modelLabels[spec.model]} on MNIST digits, batch {formatCount(spec.batch)},{" "}
          {optimizerLabels[spec.optimizer.name]} at {formatNumber(spec.optimizer.learningRate)}. Step{" "}
          {formatCount(now.step)} of {formatCount(spec.steps)};{" "}
          {plural(ring.value.length, "member trains", "members train")}
          {ring.value.length > 0 && `: ${ring.value.map((member) => member.name).join(", ")}`}.
        </p>
        <GpuLine />
      </div>
      <button
        type="button"
        class="button primary large"
        data-testid="join"
        disabled={unable || joining}
        aria-describedby="gpu-line"
        onClick={() => void join()}
      >
        {joining ? "Joining…" : "Join with this GPU"}
      </button>
    </section>
  );
}
