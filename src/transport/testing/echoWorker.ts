import { connectorFrom } from "../connectorPort";
import { createIdentity } from "../identity";
import { WebRtcNetwork } from "../webRtcNetwork";

export interface EchoWorkerStart {
  readonly port: MessagePort;
  readonly secret: Uint8Array<ArrayBuffer>;
}

/** Joins the job "echo" in a worker and sends every frame back. */
self.onmessage = async (event: MessageEvent<EchoWorkerStart>) => {
  const network = await WebRtcNetwork.create({
    connector: connectorFrom(event.data.port),
    identity: await createIdentity(),
    secret: event.data.secret,
    job: "echo",
  });
  const link = await network.contact();
  link.onFrame = ({ payload, ...header }) => link.send(header, payload);
  self.postMessage({ member: network.self, peer: link.peer });
};
