import { useSignal } from "@preact/signals";
import { messageOf } from "../base/messageOf";
import { modelNames } from "../job/spec";
import { AdvancedFields } from "./AdvancedFields";
import { Field } from "./Field";
import { modelLabels, optimizerLabels } from "./format";
import { GpuLine } from "./GpuLine";
import { Icon } from "./Icon";
import { parseIceServers } from "./iceServers";
import { draftFor, type NumberField, type OptimizerName, readDraft, withModel, withOptimizer } from "./jobDraft";
import { NumberInput } from "./NumberInput";
import { PhaseBanner } from "./PhaseBanner";
import { loadIceServers, loadMachineName, saveIceServers, saveMachineName } from "./preferences";
import { start } from "./session";
import { busy, gpu, snapshot } from "./state";

const modelHints = {
  cnn: "More accurate; more GPUs help it most",
  mlp: "Small and quick",
} as const;
const optimizers: readonly OptimizerName[] = ["sgd", "adam", "adamw"];

const iceProblem = (text: string): string | undefined => {
  try {
    parseIceServers(text);
    return undefined;
  } catch (error) {
    return messageOf(error);
  }
};

/** What to train and how, filled in sensibly, and the button that starts it. */
export function JobForm() {
  const draft = useSignal(draftFor("cnn"));
  const iceServers = useSignal(loadIceServers());
  const machineName = useSignal(loadMachineName());

  const reading = readDraft(draft.value);
  const errors = reading.kind === "invalid" ? reading.errors : {};
  const iceError = iceProblem(iceServers.value);
  const unable = gpu.value?.kind === "unavailable";
  const starting = busy.value === "start";
  const setNumber = (field: NumberField, text: string) => {
    draft.value = { ...draft.value, numbers: { ...draft.value.numbers, [field]: text } };
  };
  const submit = (event: Event) => {
    event.preventDefault();
    if (reading.kind !== "valid" || iceError !== undefined || unable || starting) {
      document.querySelector<HTMLElement>('.jobForm [aria-invalid="true"]')?.focus();
      return;
    }
    saveIceServers(iceServers.value);
    machineName.value = saveMachineName(machineName.value);
    void start(reading.spec);
  };
  const number = (field: NumberField, hint?: string) => (
    <NumberInput
      field={field}
      value={draft.value.numbers[field]}
      error={errors[field]}
      onChange={setNumber}
      {...(hint === undefined ? {} : { hint })}
    />
  );

  return (
    <form class="jobForm panel" onSubmit={submit} noValidate>
      <div class="jobFormTitle">
        <h2>MNIST digits</h2>
        <p>Learn to read handwritten digits from 60,000 examples; 10,000 others show how well it goes.</p>
      </div>

      <fieldset class="choice">
        <legend>Model</legend>
        {modelNames.map((model) => (
          <label key={model} class="choiceOption">
            <input
              type="radio"
              name="model"
              value={model}
              checked={draft.value.model === model}
              onChange={() => {
                draft.value = withModel(draft.value, model);
              }}
            />
            <span class="choiceName">{modelLabels[model]}</span>
            <span class="choiceHint">{modelHints[model]}</span>
          </label>
        ))}
      </fieldset>

      <div class="fields">
        <div class="wide">
          <Field id="optimizer" label="Optimizer">
            <select
              id="optimizer"
              name="optimizer"
              value={draft.value.optimizer}
              onChange={(event) => {
                const chosen = optimizers.find((name) => name === event.currentTarget.value);
                if (chosen !== undefined) draft.value = withOptimizer(draft.value, chosen);
              }}
            >
              {optimizers.map((name) => (
                <option key={name} value={name}>
                  {name === "sgd" ? "SGD with momentum" : optimizerLabels[name]}
                </option>
              ))}
            </select>
          </Field>
        </div>
        {number("learningRate")}
        {number("batch")}
        {number("steps")}
        {number("seed")}
      </div>

      <p class="hint">
        A batch is shared out among all members, and a seed gives the same curve however many there are.
      </p>

      <AdvancedFields
        draft={draft}
        number={number}
        iceServers={iceServers}
        iceError={iceError}
        machineName={machineName}
      />

      {errors.form !== undefined && (
        <p class="fieldError" role="alert">
          {errors.form}
        </p>
      )}
      <GpuLine />
      <button
        type="submit"
        class="button primary large"
        data-testid="start"
        disabled={unable || starting}
        aria-describedby="gpu-line"
      >
        <Icon name="play" />
        {starting ? "Starting…" : "Start training"}
      </button>
      {starting && snapshot.value !== null && <PhaseBanner />}
    </form>
  );
}
