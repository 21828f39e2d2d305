import { render } from "preact";
import "uplot/dist/uPlot.min.css";
import "./base.css";
import "./controls.css";
import "./startPage.css";
import "./jobPage.css";
import "./ring.css";
import "./stepTiming.css";
import "./members.css";
import { App } from "./App";
import { begin, reportUncaught, warnLoneMember } from "./session";

const root = document.getElementById("app");
if (root === null) throw new Error("The page lacks its #app element; index.html was changed.");
window.addEventListener("error", (event) => reportUncaught(event.error ?? event.message));
window.addEventListener("unhandledrejection", (event) => reportUncaught(event.reason));
window.addEventListener("beforeunload", warnLoneMember);
// Another link pasted over this one: a job's tab starts anew.
window.addEventListener("hashchange", () => window.location.reload());
// In a task of its own: reading the scripts and drawing the page would together hold up the browser.
setTimeout(() => {
  render(<App />, root);
  void begin();
});
