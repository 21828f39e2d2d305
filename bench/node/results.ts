import type { AdapterDescription } from "../adapter";
import type { OperatorResult } from "../operators/results";
import type { DeviceLimits } from "../training/deviceLimits";
import type { TrainingResult } from "../training/results";

export interface NodeResults {
  readonly adapter: AdapterDescription;
  readonly limits: DeviceLimits;
  readonly operators: readonly OperatorResult[];
  readonly training: readonly TrainingResult[];
}
