import { requestDevice } from "../../gpu";
import { setDefaultDevice } from "../../tensor";
import type { MemberId } from "../../transport/link";
import { DistributedDataParallel } from "../distributedDataParallel";
import { ProcessGroup } from "../processGroup";
import { convertSyncBatchNorm } from "../syncBatchNorm";
import { portNetwork } from "./portNetwork";
import { lossOf, makeNet, outcomeOf } from "./syncBatchNormCase";

export interface SyncBatchNormStart {
  readonly members: readonly MemberId[];
  readonly rank: number;
  readonly ports: ReadonlyMap<MemberId, MessagePort>;
  /** This rank's images. */
  readonly from: number;
  readonly to: number;
}

/** A rank: takes one step with its share of the images, and answers with what came of it. */
self.onmessage = async ({ data }: MessageEvent<SyncBatchNormStart>) => {
  const { members, rank, ports, from, to } = data;
  try {
    const device = await requestDevice();
    setDefaultDevice(device);
    const processGroup = new ProcessGroup({ network: portNetwork(members[rank]!, ports), members });
    const net = convertSyncBatchNorm(makeNet(), processGroup);
    const model = await DistributedDataParallel.create(net, { processGroup });
    // The losses of all ranks add up to that of one process.
    lossOf(model, from, to).mul(members.length).backward();
    await model.averageGradients();
    self.postMessage({ outcome: await outcomeOf(model.module), names: [...net.stateDict().keys()] });
    device.destroy();
  } catch (error) {
    self.postMessage({ error: String(error) });
  }
};
