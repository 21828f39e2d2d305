import { type Signal, useSignal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import { messageOf } from "../base/messageOf";
import type { JobAddress } from "../worker/api";
import { fetchServerInfo } from "../worker/serverInfo";
import { inviteLink, isLoopback } from "./address";
import { Icon } from "./Icon";
import { QrCode } from "./QrCode";

interface InviteDialogProps {
  readonly address: JobAddress;
  readonly open: Signal<boolean>;
}

/** The job's link as text, as a QR code, and on the clipboard. */
export function InviteDialog({ address, open }: InviteDialogProps) {
  const dialog = useRef<HTMLDialogElement>(null);
  const field = useRef<HTMLInputElement>(null);
  const server = useSignal<{ readonly shareOrigin: string | null } | null>(null);
  const problem = useSignal<string | null>(null);
  const copied = useSignal(false);
  const shown = open.value;

  useEffect(() => {
    if (!shown) return;
    copied.value = false;
    dialog.current?.showModal();
    fetchServerInfo().then(
      (info) => {
        server.value = info;
      },
      (error: unknown) => {
        server.value = { shareOrigin: null };
        problem.value = `The server didn't say how other machines reach it (${messageOf(error)}).`;
      },
    );
  }, [shown, copied, server, problem]);

  const copy = async (link: string) => {
    try {
      await navigator.clipboard.writeText(link);
      copied.value = true;
    } catch {
      field.current?.select();
      problem.value = "The browser doesn't let this page use the clipboard; the link is selected, so copy it yourself.";
    }
  };

  const info = server.value;
  const link = info === null ? null : inviteLink(address, window.location, info.shareOrigin);
  const onlyHere = isLoopback(window.location.hostname) && info !== null && info.shareOrigin === null;
  return (
    <dialog
      ref={dialog}
      class="inviteDialog"
      aria-labelledby="invite-title"
      onClose={() => {
        open.value = false;
      }}
    >
      {shown && (
        <div class="inviteBody">
          <div class="inviteHead">
            <h2 id="invite-title">Invite a machine</h2>
            <button type="button" class="iconButton" aria-label="Close" onClick={() => dialog.current?.close()}>
              <Icon name="close" />
            </button>
          </div>
          <p>
            Whoever opens this link sees the job and joins with one press. It carries the job's secret: treat it so.
          </p>
          {link === null ? (
            <progress aria-label="Making the link" />
          ) : (
            <>
              <QrCode text={link} />
              <div class="copyLine">
                <input
                  ref={field}
                  type="text"
                  readOnly
                  aria-label="Link to this job"
                  data-testid="invite-link"
                  value={link}
                  onFocus={(event) => event.currentTarget.select()}
                />
                <button type="button" class="button primary" data-testid="copy-link" onClick={() => void copy(link)}>
                  <Icon name={copied.value ? "check" : "copy"} />
                  {copied.value ? "Copied" : "Copy"}
                </button>
              </div>
              {link.startsWith("https:") && (
                <p class="hint">
                  The server made its own certificate, so the other browser may warn once: let it continue to this page.
                </p>
              )}
            </>
          )}
          <div role="status">
            {onlyHere && (
              <p class="fieldError">
                This link opens on this machine only: the server knows no address for others. Start it with a network
                connection, or open the page by this machine's network name.
              </p>
            )}
            {problem.value !== null && <p class="fieldError">{problem.value}</p>}
          </div>
        </div>
      )}
    </dialog>
  );
}
