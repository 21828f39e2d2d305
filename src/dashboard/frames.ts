/**
 * Gathers calls into one run a frame, so that a burst of snapshots draws once. A hidden page gets no frames and runs
 * after a moment instead.
 */
export function oncePerFrame(run: () => void): () => void {
  let waiting = false;
  const fire = () => {
    if (!waiting) return;
    waiting = false;
    run();
  };
  document.addEventListener("visibilitychange", fire);
  return () => {
    if (waiting) return;
    waiting = true;
    if (document.hidden) setTimeout(fire, 250);
    else requestAnimationFrame(fire);
  };
}
