import { messageOf } from "../base/messageOf";
import type { IceServer } from "../server/iceServers";
import { parseIceServers } from "../server/iceServers";
import { UserError } from "./userError";

/** For commander: reads an option's value as an integer of `minimum` to `maximum`. */
export function integerFrom(option: string, minimum: number, maximum = Number.MAX_SAFE_INTEGER) {
  return (text: string): number => {
    const value = Number(text);
    if (!/^[+-]?\d+$/.test(text) || value < minimum || value > maximum)
      throw new UserError(`${option} takes an integer ${range(minimum, maximum)}, not ${JSON.stringify(text)}.`, 2);
    return value;
  };
}

/** For commander: reads an option's value as a number of `minimum` to `maximum`. */
export function numberFrom(option: string, minimum: number, maximum = Number.POSITIVE_INFINITY) {
  return (text: string): number => {
    const value = Number(text);
    if (text.trim() === "" || !Number.isFinite(value) || value < minimum || value > maximum)
      throw new UserError(`${option} takes a number ${range(minimum, maximum)}, not ${JSON.stringify(text)}.`, 2);
    return value;
  };
}

const range = (minimum: number, maximum: number) =>
  maximum >= Number.MAX_SAFE_INTEGER ? `of at least ${minimum}` : `of ${minimum} to ${maximum}`;

export const portFrom = (option: string) => integerFrom(option, 0, 65_535);

/** The STUN and TURN servers in `RINGLET_ICE_SERVERS`. @throws UserError when it is malformed. */
export function iceServersFromEnvironment(text = process.env.RINGLET_ICE_SERVERS): IceServer[] {
  if (!text) return [];
  try {
    return parseIceServers(text);
  } catch (error) {
    throw new UserError(messageOf(error), 2);
  }
}
