// The page that computes operators one by one.
import { countDevices } from "../training/countDevice";
import type { AttentionMemory } from "./attentionMemory";
import { measureRows } from "./measureRows";
import type { OperatorPlan, OperatorResult } from "./results";

countDevices();

declare global {
  interface Window {
    operatorBench: {
      measure(plan: OperatorPlan): Promise<OperatorResult[]>;
      measureAttentionMemory(length: number): Promise<AttentionMemory>;
    };
  }
}

window.operatorBench = {
  measure: (plan) => measureRows(plan, (text) => void window.reportProgress(text)),
  measureAttentionMemory: async (length) => (await import("./attentionMemory")).measureAttentionMemory(length),
};
