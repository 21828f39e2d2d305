import { snapshot } from "./state";

const shownAtMost = 30;
const clock = new Intl.DateTimeFormat("en-GB", { hour: "2-digit", minute: "2-digit", second: "2-digit" });

/** What happened in the job that a person should know, newest first. */
export function Notices() {
  const notices = snapshot.value?.notices ?? [];
  if (notices.length === 0) return null;
  return (
    <section class="notices panel">
      <h2>What happened</h2>
      <ol aria-live="polite">
        {notices
          .slice(-shownAtMost)
          .reverse()
          .map((notice) => (
            <li key={`${notice.at} ${notice.text}`} class={notice.kind}>
              <time dateTime={new Date(notice.at).toISOString()}>{clock.format(notice.at)}</time>
              <span>{notice.text}</span>
            </li>
          ))}
      </ol>
    </section>
  );
}
