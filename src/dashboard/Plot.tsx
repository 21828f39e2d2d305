import { useEffect, useRef } from "preact/hooks";
import uPlot from "uplot";
import { useColorScheme } from "./theme";

interface PlotProps {
  /** Called again when the colour scheme changes; must not change otherwise. */
  readonly build: (readout: (text: string) => void) => Omit<uPlot.Options, "width" | "height">;
  readonly data: uPlot.AlignedData;
  readonly title: string;
  /** What the curve shows, for those who don't see it. */
  readonly summary: string;
  /** What stands in place of the curve while there is none. */
  readonly empty: string | null;
}

/** Never nothing, which uPlot can't draw on. */
const sizeOf = (element: HTMLElement) => ({
  width: Math.max(1, element.clientWidth),
  height: Math.max(1, element.clientHeight),
});

/** A curve that fills its container, with the values under the pointer next to its title. */
export function Plot({ build, data, title, summary, empty }: PlotProps) {
  const holder = useRef<HTMLDivElement>(null);
  const readout = useRef<HTMLParagraphElement>(null);
  const plot = useRef<uPlot | null>(null);
  const latest = useRef(data);
  const scheme = useColorScheme();
  latest.current = data;

  // The scheme is among the dependencies since its colours are read while building.
  useEffect(() => {
    const target = holder.current;
    if (target === null) return;
    const say = (text: string) => {
      if (readout.current !== null) readout.current.textContent = text;
    };
    const observer = new ResizeObserver(() => {
      const made = plot.current;
      const size = sizeOf(target);
      if (made !== null && (size.width !== made.width || size.height !== made.height)) made.setSize(size);
    });
    // Each plot in a task of its own, so that a page with several appears without a hitch.
    const timer = setTimeout(() => {
      plot.current = new uPlot({ ...build(say), ...sizeOf(target) }, latest.current, target);
      observer.observe(target);
    });
    return () => {
      clearTimeout(timer);
      observer.disconnect();
      plot.current?.destroy();
      plot.current = null;
    };
  }, [build, scheme]);

  useEffect(() => plot.current?.setData(data), [data]);

  return (
    <section class="plot panel">
      <div class="plotHead">
        <h2>{title}</h2>
        <p class="readout" ref={readout} />
      </div>
      <div ref={holder} class="plotCanvas" role="img" aria-label={summary}>
        {empty !== null && <p class="plotEmpty">{empty}</p>}
      </div>
    </section>
  );
}
