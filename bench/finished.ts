/** Firefox looks for finished work every 100 ms only, and at each submit. */
const needsNudges = navigator.userAgent.includes("Firefox");

/** Resolves when the device's queue is empty. */
export async function finished({ queue }: GPUDevice): Promise<void> {
  const done = queue.onSubmittedWorkDone();
  if (!needsNudges) return done.then(() => {});
  const nudges = setInterval(() => queue.submit([]), 1);
  try {
    await done;
  } finally {
    clearInterval(nudges);
  }
}
