/**
 * The functions of torch.distributed, in camelCase. Without a group they run over the whole world. Ranks are those of the whole world, also
 * where a group is given, as in PyTorch; the methods of a ProcessGroup take ranks within the group.
 */
import { getProcessGroup } from "./defaultGroup";
import * as objects from "./objects";
import type { PointToPoint, ProcessGroup } from "./processGroup";
import type { ReduceOp } from "./reduceOp";
import type { Store } from "./store";
import type { Values } from "./values";
import type { Work } from "./work";

type Group = ProcessGroup;
const world = getProcessGroup;

/** This rank in the group; -1 where the group is null, as `newGroup` gives it to ranks outside. */
export const getRank = (group: Group | null = world()): number => group?.rank ?? -1;
/** The size of the group; -1 where it is null. */
export const getWorldSize = (group: Group | null = world()): number => group?.worldSize ?? -1;

/** A group of some ranks. Every rank must call this, with the same ranks. @returns null on the ranks that aren't in it. */
export const newGroup = (ranks: readonly number[]): Group | null => world().newGroup(ranks);
/** Splits the world into groups of `size` consecutive ranks. @returns this rank's. Every rank must call this. */
export const newSubgroups = (size: number): Group => world().newSubgroups(size);
/** The rank in the whole world of a rank in a group. */
export const getGlobalRank = (group: Group, groupRank: number): number => group.getGlobalRank(groupRank);
/** The rank in a group of a rank in the whole world. */
export const getGroupRank = (group: Group, globalRank: number): number => group.getGroupRank(globalRank);
export const getProcessGroupRanks = (group: Group = world()): readonly number[] => group.ranks;

/** Combines `values` over all ranks, in place; the result's bits are the same on all ranks. */
export const allReduce = (values: Values, op: ReduceOp = "sum", group: Group = world()): Work =>
  group.allReduce(values, op);
/** Combines `values` over all ranks into those of rank `destination`. */
export const reduce = (values: Values, destination: number, op: ReduceOp = "sum", group: Group = world()): Work =>
  group.reduce(values, group.getGroupRank(destination), op);
/** Copies `values` of rank `source` to all ranks. */
export const broadcast = (values: Values, source: number, group: Group = world()): Work =>
  group.broadcast(values, group.getGroupRank(source));
/** Every rank gets the input of the group's rank `r` in `outputs[r]`. */
export const allGather = (outputs: readonly Values[], input: Values, group: Group = world()): Work =>
  group.allGather(outputs, input);
/** Every rank gets all inputs one after another in `output`. */
export const allGatherIntoTensor = (output: Values, input: Values, group: Group = world()): Work =>
  group.allGatherIntoTensor(output, input);
/** Rank `destination` gets the input of the group's rank `r` in `outputs[r]`; on the others outputs are null. */
export const gather = (
  input: Values,
  outputs: readonly Values[] | null = null,
  destination = 0,
  group: Group = world(),
): Work => group.gather(input, outputs, group.getGroupRank(destination));
/** The group's rank `r` gets `inputs[r]` of rank `source` in `output`; on the others inputs are null. */
export const scatter = (
  output: Values,
  inputs: readonly Values[] | null = null,
  source = 0,
  group: Group = world(),
): Work => group.scatter(output, inputs, group.getGroupRank(source));
/** Combines `inputs[r]` of all ranks into the output of the group's rank `r`. */
export const reduceScatter = (
  output: Values,
  inputs: readonly Values[],
  op: ReduceOp = "sum",
  group: Group = world(),
): Work => group.reduceScatter(output, inputs, op);
/** Combines segment `r` of all inputs into the output of the group's rank `r`. */
export const reduceScatterTensor = (
  output: Values,
  input: Values,
  op: ReduceOp = "sum",
  group: Group = world(),
): Work => group.reduceScatterTensor(output, input, op);
/** The group's rank `r` gets `inputs[r]` of rank `s` in its `outputs[s]`. */
export const allToAll = (outputs: readonly Values[], inputs: readonly Values[], group: Group = world()): Work =>
  group.allToAll(outputs, inputs);
/** Completes once every rank has called it. */
export const barrier = (group: Group = world()): Work => group.barrier();
/** A barrier that names the ranks that didn't come in time. */
export const monitoredBarrier = (timeoutMilliseconds?: number, group: Group = world()): Work =>
  group.monitoredBarrier(timeoutMilliseconds);

/** Fills `list` with every rank's object. Objects travel as JSON. */
export const allGatherObject = (list: unknown[], object: unknown, group: Group = world()): Work =>
  objects.allGatherObject(group, list, object);
/** Fills `list` of rank `destination` with every rank's object; on the others it is null. */
export const gatherObject = (
  object: unknown,
  list: unknown[] | null = null,
  destination = 0,
  group: Group = world(),
): Work => objects.gatherObject(group, object, list, group.getGroupRank(destination));
/** Every rank's list, all of one length, gets the objects of rank `source`. */
export const broadcastObjectList = (list: unknown[], source = 0, group: Group = world()): Work =>
  objects.broadcastObjectList(group, list, group.getGroupRank(source));
/** `output[0]` gets this rank's object of rank `source`'s `inputs`. */
export const scatterObjectList = (
  output: unknown[],
  inputs: readonly unknown[] | null = null,
  source = 0,
  group: Group = world(),
): Work => objects.scatterObjectList(group, output, inputs, group.getGroupRank(source));

/** Sends to a rank, which receives by `recv` with the same tag, type and length. Completes when the values are with the network. */
export const send = (values: Values, destination: number, tag = 0, group: Group = world()): Work =>
  group.send(values, group.getGroupRank(destination), tag);
/** Receives what rank `source` sends with this tag. */
export const recv = (values: Values, source: number, tag = 0, group: Group = world()): Work =>
  group.recv(values, group.getGroupRank(source), tag);
/** The same as `send`: all of these return at once, and `wait()` waits. */
export const isend = send;
/** The same as `recv`. */
export const irecv = recv;
/** Starts all of a list of sends and receptions at once. */
export const batchIsendIrecv = (operations: readonly PointToPoint[], group: Group = world()): Work[] =>
  group.batchIsendIrecv(operations.map((one) => ({ ...one, peer: group.getGroupRank(one.peer) })));

/** Keys and values that all ranks share, kept by rank 0. */
export const getStore = (): Store => world().store;
