import { useSignal } from "@preact/signals";
import type { JobAddress } from "../worker/api";
import { Icon, type IconName } from "./Icon";
import { InviteDialog } from "./InviteDialog";
import { leave, pause, resume, stop } from "./session";
import { type Action, busy, isOver, phase, takesPart } from "./state";

interface ControlProps {
  readonly action: Action;
  readonly icon: IconName;
  readonly label: string;
  readonly title: string;
  readonly run: () => Promise<void>;
}

function Control({ action, icon, label, title, run }: ControlProps) {
  return (
    <button
      type="button"
      class="button"
      data-testid={action}
      title={title}
      disabled={busy.value === action}
      onClick={() => void run()}
    >
      <Icon name={icon} />
      {label}
    </button>
  );
}

/** What a person can do with the job; pause, resume and stop are for everyone in it. */
export function Controls({ address }: { readonly address: JobAddress }) {
  const inviting = useSignal(false);
  const kind = phase.value.kind;
  const inRing = kind === "training" || kind === "regrouping" || kind === "paused";
  const open = !isOver(kind) && kind !== "failed" && kind !== "left";
  return (
    <div class="controls">
      {inRing && kind === "paused" && (
        <Control action="resume" icon="play" label="Resume" title="Resume training for everyone" run={resume} />
      )}
      {inRing && kind !== "paused" && (
        <Control action="pause" icon="pause" label="Pause" title="Pause training for everyone" run={pause} />
      )}
      {inRing && <Control action="stop" icon="stop" label="Stop" title="Stop the job for everyone" run={stop} />}
      {takesPart(kind) && (
        <Control action="leave" icon="leave" label="Leave" title="Leave the ring; the others go on" run={leave} />
      )}
      {open && (
        <button
          type="button"
          class="button primary"
          data-testid="invite"
          onClick={() => {
            inviting.value = true;
          }}
        >
          <Icon name="invite" />
          Invite
        </button>
      )}
      <InviteDialog address={address} open={inviting} />
    </div>
  );
}
