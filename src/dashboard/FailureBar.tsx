import { Icon } from "./Icon";
import { failure } from "./state";

/** The last failed action, as a sentence at the top of the page. */
export function FailureBar() {
  return (
    <div class="failureBar" role="alert">
      {failure.value !== null && (
        <div class="failureBarBody">
          <p data-testid="error">{failure.value}</p>
          <button
            type="button"
            class="iconButton"
            aria-label="Dismiss"
            onClick={() => {
              failure.value = null;
            }}
          >
            <Icon name="close" />
          </button>
        </div>
      )}
    </div>
  );
}
