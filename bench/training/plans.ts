import type { TrainingPlan } from "./results";
import type { WorkloadName } from "./workloads";

type Repetitions = Pick<TrainingPlan, "warmUpSteps" | "rounds" | "stepsPerTurn">;

export const plans: Readonly<Record<"full" | "quick", Readonly<Record<WorkloadName, Repetitions>>>> = {
  full: {
    mlp: { warmUpSteps: 8, rounds: 12, stepsPerTurn: 3 },
    cnn: { warmUpSteps: 3, rounds: 6, stepsPerTurn: 1 },
    gpt: { warmUpSteps: 3, rounds: 4, stepsPerTurn: 1 },
  },
  quick: {
    mlp: { warmUpSteps: 3, rounds: 3, stepsPerTurn: 2 },
    cnn: { warmUpSteps: 2, rounds: 2, stepsPerTurn: 1 },
    gpt: { warmUpSteps: 2, rounds: 1, stepsPerTurn: 1 },
  },
};
