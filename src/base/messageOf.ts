/** The sentence that something thrown carries. */
export const messageOf = (error: unknown): string => (error instanceof Error ? error.message : String(error));
