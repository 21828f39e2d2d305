import { Logo } from "./Logo";

interface MessagePageProps {
  readonly title: string;
  readonly text: string;
  readonly advice: string;
}

/** A whole page for what can't go on: what is wrong and what to do next. */
export function MessagePage({ title, text, advice }: MessagePageProps) {
  return (
    <div class="page">
      <header class="masthead">
        <Logo />
      </header>
      <main class="message">
        <div role="alert">
          <h1>{title}</h1>
          <p class="messageText" data-testid="error">
            {text}
          </p>
          <p>{advice}</p>
        </div>
        <p class="actions">
          <button type="button" class="button primary" onClick={() => window.location.reload()}>
            Try again
          </button>
          <a class="button" href="/">
            Start a job
          </a>
        </p>
      </main>
    </div>
  );
}
