import { useEffect, useRef } from "preact/hooks";
import type { JobAddress } from "../worker/api";
import { AccuracyChart } from "./AccuracyChart";
import { Controls } from "./Controls";
import { Digits } from "./Digits";
import { Downloads } from "./Downloads";
import { JobTitle } from "./JobTitle";
import { JoinPanel } from "./JoinPanel";
import { Logo } from "./Logo";
import { LossChart } from "./LossChart";
import { MemberTable } from "./MemberTable";
import { Notices } from "./Notices";
import { PhaseBanner } from "./PhaseBanner";
import { Progress } from "./Progress";
import { RingDiagram } from "./RingDiagram";
import { Stats } from "./Stats";
import { StepTimingBar } from "./StepTimingBar";

/** A running job: its curves, its ring, and what can be done with it. */
export function JobPage({ address }: { readonly address: JobAddress }) {
  const content = useRef<HTMLElement>(null);
  // The button that led here is gone: eyes and keyboard go on from the top of this page.
  useEffect(() => {
    window.scrollTo(0, 0);
    content.current?.focus({ preventScroll: true });
  }, []);
  return (
    <div class="page">
      <header class="masthead">
        <Logo />
        <JobTitle />
        <Controls address={address} />
      </header>
      <main class="jobPage" ref={content} tabIndex={-1}>
        <PhaseBanner />
        <JoinPanel />
        <Downloads />
        <div class="overview">
          <Progress />
          <Stats />
        </div>
        <div class="curves">
          <LossChart />
          <AccuracyChart />
        </div>
        <aside class="side">
          <RingDiagram />
          <StepTimingBar />
        </aside>
        <MemberTable />
        <Digits />
        <Notices />
      </main>
    </div>
  );
}
