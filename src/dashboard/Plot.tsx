import { useEffect, useRef } from "preact/hooks";
import uPlot from "uplot";
import { useColorScheme } from "./theme";

interface PlotProps {
  /** Called again when the colour scheme changes; must not change otherwise. */
  readonly build: (readout: (text: string) => void) => Omit<uPlot.Options, "width" | "height">;
  readonly data: uPlot.AlignedData;
  readonly height: number;
  readonly title: string;
  /** What the curve shows, for those who don't see it. */
  readonly summary: string;
}

/** A curve that fills its container's width, with the values under the pointer next to its title. */
export function Plot({ build, data, height, title, summary }: PlotProps) {
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
    const made = new uPlot({ ...build(say), width: target.clientWidth, height }, latest.current, target);
    plot.current = made;
    const observer = new ResizeObserver(() => {
      if (target.clientWidth > 0 && target.clientWidth !== made.width)
        made.setSize({ width: target.clientWidth, height });
    });
    observer.observe(target);
    return () => {
      observer.disconnect();
      made.destroy();
      plot.current = null;
    };
  }, [build, height, scheme]);

  useEffect(() => plot.current?.setData(data), [data]);

  return (
    <section class="plot panel">
      <div class="plotHead">
        <h2>{title}</h2>
        <p class="readout" ref={readout} />
      </div>
      <div ref={holder} class="plotCanvas" role="img" aria-label={summary} style={{ height }} />
    </section>
  );
}
