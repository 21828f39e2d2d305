import { concatBytes } from "../base/bytes";
import { boundariesOf, evenBoundaries, type Place } from "./algorithms/boundaries";
import { chooseAllGather, chooseBroadcast } from "./algorithms/choose";
import { gatherTo, scatterFrom } from "./algorithms/direct";
import { dissemination } from "./algorithms/doubling";
import { Elements, elementTypes } from "./elementType";
import type { Run } from "./groupExchange";
import type { ProcessGroup } from "./processGroup";
import { inSequence, type Schedule } from "./schedule";
import { CollectiveError, type Work } from "./work";

/** The most bytes of all objects of a collective together, as JSON. */
const limitBytes = 64 * 1024 * 1024;

/** Objects travel as JSON, after their lengths. */
function encode(object: unknown): Elements {
  const text: string | undefined = JSON.stringify(object);
  if (text === undefined) throw new TypeError(`Objects travel as JSON, which has no ${typeof object}.`);
  return elementsOf(new TextEncoder().encode(text));
}

function decode(values: Elements): unknown {
  return JSON.parse(new TextDecoder().decode(values.bytesOf(0, values.length)));
}

const elementsOf = (bytes: Uint8Array): Elements => new Elements(elementTypes.uint8, new Uint8Array(bytes));

/** All ranks' lengths, told to all. */
async function gatherLengths(run: Run, place: Place, length: number): Promise<number[]> {
  const lengths = new Uint32Array(place.worldSize);
  lengths[place.rank] = length;
  const whole = new Elements(elementTypes.uint32, lengths);
  const schedule = chooseAllGather(lengths.byteLength)(place, evenBoundaries(place.worldSize, place.worldSize));
  await run({ detail: "of objects: their lengths", schedule, input: whole, output: whole, reduction: null });
  return bounded([...lengths]);
}

/** The root's list of lengths, told to all. */
async function broadcastLengths(
  run: Run,
  place: Place,
  root: number,
  lengths: Uint32Array<ArrayBuffer>,
): Promise<number[]> {
  const whole = new Elements(elementTypes.uint32, lengths);
  const schedule = chooseBroadcast(place, lengths.byteLength)(place, root, lengths.length);
  const detail = `of ${lengths.length} objects from rank ${root}: their lengths`;
  await run({ detail, schedule: together(place, schedule), input: whole, output: whole, reduction: null });
  return bounded([...lengths]);
}

/** @throws CollectiveError when they are too long to be taken in. */
function bounded(lengths: number[]): number[] {
  const sum = lengths.reduce((a, b) => a + b, 0);
  if (sum > limitBytes)
    throw new CollectiveError(
      `The objects have ${sum} bytes as JSON; ${limitBytes} is the most that a collective takes.`,
    );
  return lengths;
}

const together = (place: Place, schedule: Schedule) => inSequence(schedule, dissemination(place));

/** As all_gather_object: fills `objects` with every rank's object. Objects travel as JSON. */
export function allGatherObject(group: ProcessGroup, objects: unknown[], object: unknown): Work {
  return group.collective("allGatherObject", 2, async (run) => {
    const own = encode(object);
    const lengths = await gatherLengths(run, group, own.length);
    const start = boundariesOf(lengths);
    const whole = Elements.allocate(own.type, start(group.worldSize));
    whole.copyFrom(own, start(group.rank));
    const schedule = chooseAllGather(whole.length)(group, start);
    await run({ detail: "of objects", schedule, input: own, output: whole, reduction: null });
    for (const rank of lengths.keys()) objects[rank] = decode(whole.slice(start(rank), start(rank + 1)));
  });
}

/** As gather_object: fills `objects` of rank `destination` with every rank's object; on the others it is null. */
export function gatherObject(
  group: ProcessGroup,
  object: unknown,
  objects: unknown[] | null,
  destination: number,
): Work {
  return group.collective("gatherObject", 2, async (run) => {
    const isRoot = group.rank === destination;
    if (isRoot && objects === null) throw new RangeError("gatherObject needs a list on the rank that gathers.");
    const own = encode(object);
    const lengths = await gatherLengths(run, group, own.length);
    const start = boundariesOf(lengths);
    const whole = isRoot ? Elements.allocate(own.type, start(group.worldSize)) : own;
    if (isRoot) whole.copyFrom(own, start(group.rank));
    const schedule = together(group, gatherTo(group, destination, start));
    await run({ detail: `of objects to rank ${destination}`, schedule, input: own, output: whole, reduction: null });
    if (isRoot && objects !== null)
      for (const rank of lengths.keys()) objects[rank] = decode(whole.slice(start(rank), start(rank + 1)));
  });
}

/** As broadcast_object_list: every rank's list, all of one length, gets the objects of rank `source`. */
export function broadcastObjectList(group: ProcessGroup, objects: unknown[], source: number): Work {
  return group.collective("broadcastObjectList", 2, async (run) => {
    const isRoot = group.rank === source;
    const parts = isRoot ? objects.map(encode) : [];
    const given = isRoot ? Uint32Array.from(parts, (part) => part.length) : new Uint32Array(objects.length);
    const start = boundariesOf(await broadcastLengths(run, group, source, given));
    const length = start(objects.length);
    const whole = isRoot ? join(parts) : Elements.allocate(elementTypes.uint8, length);
    const schedule = together(group, chooseBroadcast(group, length)(group, source, length));
    const detail = `of ${objects.length} objects from rank ${source}`;
    await run({ detail, schedule, input: whole, output: whole, reduction: null });
    if (!isRoot)
      for (const index of objects.keys()) objects[index] = decode(whole.slice(start(index), start(index + 1)));
  });
}

/** As scatter_object_list: `output[0]` gets the object of rank `source`'s `inputs` at this rank; on the others inputs are null. */
export function scatterObjectList(
  group: ProcessGroup,
  output: unknown[],
  inputs: readonly unknown[] | null,
  source: number,
): Work {
  return group.collective("scatterObjectList", 2, async (run) => {
    const isRoot = group.rank === source;
    if (isRoot && inputs?.length !== group.worldSize)
      throw new RangeError(
        `scatterObjectList takes ${group.worldSize} objects in a world of ${group.worldSize}, and got ${inputs?.length ?? "none"}.`,
      );
    const parts = (isRoot ? (inputs ?? []) : []).map(encode);
    const given = isRoot ? Uint32Array.from(parts, (part) => part.length) : new Uint32Array(group.worldSize);
    const start = boundariesOf(await broadcastLengths(run, group, source, given));
    const own = Elements.allocate(elementTypes.uint8, start(group.rank + 1) - start(group.rank));
    const whole = isRoot ? join(parts) : own;
    if (isRoot) own.copyFrom(whole.slice(start(group.rank), start(group.rank + 1)));
    const schedule = together(group, scatterFrom(group, source, start));
    await run({ detail: `of objects from rank ${source}`, schedule, input: whole, output: own, reduction: null });
    output[0] = decode(own);
  });
}

function join(parts: readonly Elements[]): Elements {
  return elementsOf(concatBytes(...parts.map((part) => part.bytesOf(0, part.length))));
}
