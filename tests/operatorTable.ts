import { functionalTable } from "./functionalTable";
import type { OperatorRow } from "./operatorRow";
import { tensorOperators } from "./tensorOperators";

/** Rows by PyTorch's name, which is also that of the reference's file. */
export const operatorTable: Readonly<Record<string, OperatorRow>> = { ...tensorOperators, ...functionalTable };
