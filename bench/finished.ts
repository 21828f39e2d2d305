import { FinishedWork } from "../src/gpu/finishedWork";

/** Resolves when the device's queue is empty. */
export const finished = ({ queue }: GPUDevice): Promise<void> =>
  new FinishedWork(queue).wait(queue.onSubmittedWorkDone().then(() => {}));
