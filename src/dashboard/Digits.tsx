import { DigitTile } from "./DigitTile";
import { predictions, predictionsFailure } from "./state";

/** A handful of validation digits with what the model takes them for. */
export function Digits() {
  const guesses = predictions.value;
  const right = guesses.filter((guess) => guess.guess === guess.label).length;
  const problem = predictionsFailure.value;
  if (guesses.length === 0 && problem === null) return null;
  return (
    <section class="digits panel">
      <div class="panelHead">
        <h2>Digits it has never trained on</h2>
        <p class="hint">
          {right} of {guesses.length} right
        </p>
      </div>
      {problem !== null && (
        <p class="fieldError" role="status">
          {problem}
        </p>
      )}
      <ul>
        {guesses.map((guess) => (
          <DigitTile key={guess.index} guess={guess} />
        ))}
      </ul>
    </section>
  );
}
