import { Logo } from "./Logo";

/** Shown while a link is being followed, which takes ten seconds at most. */
export function OpeningPage() {
  return (
    <div class="page">
      <header class="masthead">
        <Logo />
      </header>
      <main class="message" aria-live="polite">
        <h1>Opening the job</h1>
        <p data-testid="phase" data-phase="connecting">
          Looking for a member of this job and proving that this link may come in. This takes a few seconds.
        </p>
        <progress aria-label="Connecting" />
      </main>
    </div>
  );
}
