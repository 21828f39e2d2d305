import { FailureBar } from "./FailureBar";
import { JobPage } from "./JobPage";
import { MessagePage } from "./MessagePage";
import { OpeningPage } from "./OpeningPage";
import { StartPage } from "./StartPage";
import { view } from "./state";

export function App() {
  return (
    <>
      <FailureBar />
      <CurrentPage />
    </>
  );
}

function CurrentPage() {
  const shown = view.value;
  switch (shown.kind) {
    case "start":
      return <StartPage />;
    case "opening":
      return <OpeningPage />;
    case "job":
      return <JobPage address={shown.address} />;
    case "message":
      return <MessagePage title={shown.title} text={shown.text} advice={shown.advice} />;
  }
}
