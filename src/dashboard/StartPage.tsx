import { JobForm } from "./JobForm";
import { Logo } from "./Logo";
import { RingIllustration } from "./RingIllustration";

export function StartPage() {
  return (
    <div class="page">
      <header class="masthead">
        <Logo />
      </header>
      <main class="startPage">
        <section class="pitch">
          <h1>Many machines train one model.</h1>
          <p>
            Press Start, and this tab trains a network on its GPU. Send the link to others, and every tab that opens it
            takes its share of each batch. Nothing to install.
          </p>
          <RingIllustration />
        </section>
        <JobForm />
      </main>
    </div>
  );
}
