import { useEffect, useRef } from "preact/hooks";
import type { Prediction } from "../job/replica";
import { formatPercent } from "./format";

const side = 28;

/** One digit and the guess at it. The picture is drawn once, since an index always shows the same digit. */
export function DigitTile({ guess }: { readonly guess: Prediction }) {
  const canvas = useRef<HTMLCanvasElement>(null);
  const { pixels } = guess;
  const drawn = useRef(-1);
  useEffect(() => {
    const context = canvas.current?.getContext("2d");
    if (!context || drawn.current === guess.index) return;
    const image = context.createImageData(side, side);
    for (let i = 0; i < side * side; i += 1) image.data[i * 4 + 3] = pixels[i] ?? 0;
    context.putImageData(image, 0, 0);
    drawn.current = guess.index;
  }, [guess.index, pixels]);
  const right = guess.guess === guess.label;
  return (
    <li class={right ? "digit right" : "digit wrong"}>
      <canvas ref={canvas} width={side} height={side} role="img" aria-label={`A handwritten ${guess.label}`} />
      <p>
        <strong>
          <span class="visuallyHidden">{right ? "rightly read as " : "wrongly read as "}</span>
          {guess.guess}
        </strong>
        <span>{formatPercent(guess.probability)}</span>
      </p>
      {!right && <p class="digitLabel">is {guess.label}</p>}
    </li>
  );
}
