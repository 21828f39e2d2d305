import { expose } from "comlink";
import { connectorFrom } from "../transport/connectorPort";
import { TabWorker } from "./tabWorker";

// The first message brings the port to the page's connector; everything after it is Comlink's.
self.addEventListener(
  "message",
  (event: MessageEvent<{ readonly connector: MessagePort }>) => {
    expose(new TabWorker(connectorFrom(event.data.connector)));
  },
  { once: true },
);
