import { defaultMachineName, machineNameLength } from "./machineName";

const nameKey = "ringlet.machineName";
const iceKey = "ringlet.iceServers";
const trainingKey = "ringlet.training";

/** Storage that is switched off or full only means that nothing is remembered. */
const read = (storage: () => Storage, key: string): string | null => {
  try {
    return storage().getItem(key);
  } catch {
    return null;
  }
};
const write = (storage: () => Storage, key: string, value: string | null): void => {
  try {
    if (value === null) storage().removeItem(key);
    else storage().setItem(key, value);
  } catch {
    return;
  }
};
const lasting = () => localStorage;
const thisTab = () => sessionStorage;

export const loadMachineName = (): string => read(lasting, nameKey) ?? defaultMachineName(navigator.userAgent);

/** Cuts the name to what fits; an empty one brings back the default. */
export function saveMachineName(name: string): string {
  const short = name.trim().slice(0, machineNameLength);
  write(lasting, nameKey, short === "" ? null : short);
  return short === "" ? defaultMachineName(navigator.userAgent) : short;
}

/** JSON text as in RINGLET_ICE_SERVERS. */
export const loadIceServers = (): string => read(lasting, iceKey) ?? "";
export const saveIceServers = (text: string): void => write(lasting, iceKey, text.trim() === "" ? null : text);

/** Whether this tab was training the job before it was reloaded. */
export const wasTraining = (job: string): boolean => read(thisTab, trainingKey) === job;
export const rememberTraining = (job: string | null): void => write(thisTab, trainingKey, job);
