/** Where a tuner's choices are kept: by adapter, the names of variants by what they were chosen for. */
export interface TuningStore {
  load(adapter: string): Promise<TuningChoices | null>;
  save(adapter: string, choices: TuningChoices): Promise<void>;
}

export type TuningChoices = { readonly [key: string]: string };

const database = "ringlet";
const table = "tuning";

/** The browser's IndexedDB; elsewhere nothing is kept beyond the process. */
export const defaultTuningStore = (): TuningStore =>
  typeof indexedDB === "undefined" ? memoryTuningStore : indexedDbTuningStore;

const kept = new Map<string, TuningChoices>();

const memoryTuningStore: TuningStore = {
  load: async (adapter) => kept.get(adapter) ?? null,
  save: async (adapter, choices) => void kept.set(adapter, choices),
};

const indexedDbTuningStore: TuningStore = {
  async load(adapter) {
    const stored: unknown = await inTable("readonly", (choices) => choices.get(adapter));
    return isChoices(stored) ? stored : null;
  },
  async save(adapter, choices) {
    await inTable("readwrite", (all) => all.put(choices, adapter));
  },
};

/** What lies in a browser's storage may be anything. */
const isChoices = (stored: unknown): stored is TuningChoices =>
  typeof stored === "object" && stored !== null && Object.values(stored).every((name) => typeof name === "string");

async function inTable<T>(mode: IDBTransactionMode, act: (table: IDBObjectStore) => IDBRequest<T>): Promise<T> {
  const opening = indexedDB.open(database, 1);
  opening.onupgradeneeded = () => void opening.result.createObjectStore(table);
  const opened = await settled(opening);
  try {
    return await settled(act(opened.transaction(table, mode).objectStore(table)));
  } finally {
    opened.close();
  }
}

function settled<T>(request: IDBRequest<T>): Promise<T> {
  return new Promise((resolve, reject) => {
    request.onsuccess = () => resolve(request.result);
    request.onerror = () =>
      reject(
        new Error(`The choices of variants can't be kept in IndexedDB: ${request.error?.message ?? "no reason given"}`),
      );
  });
}
