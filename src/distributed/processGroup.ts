import { type Clock, realClock } from "../base/clock";
import type { MemberId, Network } from "../transport/link";
import { boundariesOf, evenBoundaries, type Place } from "./algorithms/boundaries";
import {
  type AllReduceAlgorithm,
  chooseAllGather,
  chooseAllReduce,
  chooseBroadcast,
  chooseReduce,
  chooseReduceScatter,
} from "./algorithms/choose";
import { allToAllDirect, gatherTo, scatterFrom } from "./algorithms/direct";
import { dissemination } from "./algorithms/doubling";
import { Elements, elementTypes } from "./elementType";
import { defaultChunkBytes } from "./exchange";
import { GroupExchange, type Run } from "./groupExchange";
import { GroupWork } from "./groupWork";
import { firstReservedTag } from "./mailbox";
import { monitoredBarrier } from "./monitoredBarrier";
import type { ReduceOp } from "./reduceOp";
import { reductionOf } from "./reduction";
import { inSequence, type Schedule } from "./schedule";
import type { Store } from "./store";
import { describeValues, lengthOf, place, read, typeOf, type Values, write } from "./values";
import type { Work } from "./work";
import { destroyed, World } from "./world";

export interface ProcessGroupOptions {
  readonly network: Network;
  /** By rank; there is a link to each. */
  readonly members: readonly MemberId[];
  /** How long a collective may go without progress. */
  readonly timeoutMilliseconds?: number;
  /** The most bytes in a chunk, a multiple of 4; the same on all members, and no more than a link takes. */
  readonly chunkBytes?: number;
  readonly clock?: Clock;
}

/** Numbers of groups above this are duplicates'. */
const duplicatesPerGroup = 2 ** 16;

/** A group within a world. */
interface Membership {
  readonly world: World;
  readonly id: number;
  readonly ranks: readonly number[];
}

/** One of a batch of messages. */
export interface PointToPoint {
  readonly op: "isend" | "irecv";
  readonly values: Values;
  readonly peer: number;
  readonly tag?: number;
}

/**
 * Ranks that run the same collectives in the same order, as c10d's process groups. Every collective returns its Work at once, and
 * collectives may overlap: those of one group pair up by the order in which each rank calls them.
 *
 * Every rank must call the same thing with the same types and shapes; if one doesn't, or fails in any other way, the collective fails on all
 * ranks. Ranks are those within the group. Values must be left alone until wait() settles.
 */
export class ProcessGroup {
  readonly rank: number;
  readonly worldSize: number;
  /** The group's ranks in the whole world, by the rank within the group. */
  readonly ranks: readonly number[];
  readonly #world: World;
  readonly #id: number;
  readonly #exchange: GroupExchange;
  #duplicates = 0;

  constructor(options: ProcessGroupOptions | Membership) {
    const membership = "world" in options ? options : worldOf(options);
    const { world, id, ranks } = membership;
    this.#world = world;
    this.#id = id;
    this.ranks = ranks;
    this.#exchange = new GroupExchange(world, id, ranks);
    this.rank = this.#exchange.place.rank;
    this.worldSize = ranks.length;
    if (!("world" in options)) world.listen();
  }

  /**
   * A group of some of the world's ranks, in this order. Every rank of the world must call this, with the same ranks.
   * @returns null on the ranks that aren't in it.
   */
  newGroup(ranks: readonly number[]): ProcessGroup | null {
    this.#mustBeWorld("newGroup");
    const isRank = (rank: number) => Number.isInteger(rank) && rank >= 0 && rank < this.worldSize;
    if (ranks.length === 0 || !ranks.every(isRank) || new Set(ranks).size !== ranks.length)
      throw new RangeError(`newGroup: [${ranks.join(", ")}] aren't different ranks of a world of ${this.worldSize}.`);
    const id = this.#world.nextGroup();
    return ranks.includes(this.rank) ? new ProcessGroup({ world: this.#world, id, ranks: [...ranks] }) : null;
  }

  /** Splits the world into groups of `size` consecutive ranks. @returns this rank's. Every rank must call this. */
  newSubgroups(size: number): ProcessGroup {
    if (!Number.isInteger(size) || size < 1 || this.worldSize % size !== 0)
      throw new RangeError(`newSubgroups: a world of ${this.worldSize} can't be split into groups of ${size}.`);
    const groups = Array.from({ length: this.worldSize / size }, (_, index) =>
      this.newGroup(Array.from({ length: size }, (_, offset) => index * size + offset)),
    );
    const own = groups.find((group) => group !== null);
    if (own === undefined || own === null) throw new Error("newSubgroups: this rank is in no group.");
    return own;
  }

  /**
   * Another group of the same ranks, whose collectives have an order of their own, as MPI_Comm_dup's. Every rank of this group must call this.
   */
  duplicate(): ProcessGroup {
    this.#duplicates += 1;
    const id = (this.#id + 1) * duplicatesPerGroup + this.#duplicates;
    return new ProcessGroup({ world: this.#world, id, ranks: this.ranks });
  }

  /** The rank in the whole world of a rank in this group. */
  getGlobalRank(groupRank: number): number {
    const rank = this.ranks[groupRank];
    if (rank === undefined)
      throw new RangeError(`getGlobalRank: there is no rank ${groupRank} in a group of ${this.worldSize}.`);
    return rank;
  }

  /** The rank in this group of a rank in the whole world. */
  getGroupRank(globalRank: number): number {
    const rank = this.ranks.indexOf(globalRank);
    if (rank < 0)
      throw new RangeError(`getGroupRank: rank ${globalRank} isn't in the group of ranks ${this.ranks.join(", ")}.`);
    return rank;
  }

  /** Combines `values` over all ranks, in place; the result's bits are the same on all ranks. */
  allReduce(values: Values, op: ReduceOp = "sum", options: { readonly algorithm?: AllReduceAlgorithm } = {}): Work {
    return this.#collective("allReduce", async (run) => {
      const type = typeOf(values);
      const reduction = reductionOf(op, type, this.worldSize);
      const data = await read(values);
      const algorithm = options.algorithm ?? chooseAllReduce(this.#place, data.length * type.partialBytes);
      const chosen = algorithm(this.#place, data.length);
      // Without elements there is only to agree on that.
      const schedule = data.length === 0 ? { ...dissemination(this.#place), algorithm: chosen.algorithm } : chosen;
      await run({ detail: `(${op}) of ${describeValues(values)}`, schedule, input: data, output: data, reduction });
      write(values, data);
    });
  }

  /** Combines `values` over all ranks into those of rank `destination`. The others' stay as they are. */
  reduce(values: Values, destination: number, op: ReduceOp = "sum"): Work {
    return this.#collective("reduce", async (run) => {
      this.#mustBeRank("reduce", destination);
      const type = typeOf(values);
      const reduction = reductionOf(op, type, this.worldSize);
      const data = await read(values);
      const choose = chooseReduce(this.#place, data.length * type.partialBytes);
      await run({
        detail: `(${op}) of ${describeValues(values)} to rank ${destination}`,
        schedule: this.#together(choose(this.#place, destination, data.length)),
        input: data,
        output: data,
        reduction,
      });
      if (this.rank === destination) write(values, data);
    });
  }

  /** Copies `values` of rank `source` to all ranks. */
  broadcast(values: Values, source: number): Work {
    return this.#collective("broadcast", async (run) => {
      this.#mustBeRank("broadcast", source);
      const data = this.rank === source ? await read(values) : place(values);
      const choose = chooseBroadcast(this.#place, data.length * data.type.bytes);
      await run({
        detail: `of ${describeValues(values)} from rank ${source}`,
        schedule: this.#together(choose(this.#place, source, data.length)),
        input: data,
        output: data,
        reduction: null,
      });
      if (this.rank !== source) write(values, data);
    });
  }

  /** Every rank gets the input of rank `r` in `outputs[r]`. All are of one type and shape. */
  allGather(outputs: readonly Values[], input: Values): Work {
    return this.#collective("allGather", async (run) => {
      this.#mustMatch("allGather", "outputs", outputs, input);
      const whole = Elements.allocate(typeOf(input), lengthOf(input) * this.worldSize);
      await this.#runAllGather(run, whole, await read(input), `of ${describeValues(input)}`);
      spread(whole, outputs);
    });
  }

  /** Every rank gets all inputs one after another, by rank, in `output`. */
  allGatherIntoTensor(output: Values, input: Values): Work {
    return this.#collective("allGatherIntoTensor", async (run) => {
      this.#mustDivide("allGatherIntoTensor", output, input);
      const whole = place(output);
      await this.#runAllGather(run, whole, await read(input), `of ${describeValues(input)}`);
      write(output, whole);
    });
  }

  /** Rank `destination` gets the input of rank `r` in `outputs[r]`; on the others outputs are null. */
  gather(input: Values, outputs: readonly Values[] | null, destination: number): Work {
    return this.#collective("gather", async (run) => {
      this.#mustBeRank("gather", destination);
      const data = await read(input);
      const isRoot = this.rank === destination;
      const received = isRoot ? this.#mustMatch("gather", "outputs", outputs, input) : [];
      const start = evenBoundaries(data.length * this.worldSize, this.worldSize);
      const whole = isRoot ? Elements.allocate(data.type, data.length * this.worldSize) : data;
      if (isRoot) whole.copyFrom(data, start(this.rank));
      await run({
        detail: `of ${describeValues(input)} to rank ${destination}`,
        schedule: this.#together(gatherTo(this.#place, destination, start)),
        input: data,
        output: whole,
        reduction: null,
      });
      if (isRoot) spread(whole, received);
    });
  }

  /** Rank `r` gets `inputs[r]` of rank `source` in `output`; on the others inputs are null. */
  scatter(output: Values, inputs: readonly Values[] | null, source: number): Work {
    return this.#collective("scatter", async (run) => {
      this.#mustBeRank("scatter", source);
      const isRoot = this.rank === source;
      const data = place(output);
      const start = evenBoundaries(data.length * this.worldSize, this.worldSize);
      const whole = isRoot ? await concatenate(this.#mustMatch("scatter", "inputs", inputs, output), output) : data;
      if (isRoot) data.copyFrom(whole.slice(start(this.rank), start(this.rank + 1)));
      await run({
        detail: `of ${describeValues(output)} from rank ${source}`,
        schedule: this.#together(scatterFrom(this.#place, source, start)),
        input: whole,
        output: data,
        reduction: null,
      });
      write(output, data);
    });
  }

  /** Combines `inputs[r]` of all ranks into the output of rank `r`. */
  reduceScatter(output: Values, inputs: readonly Values[], op: ReduceOp = "sum"): Work {
    return this.#collective("reduceScatter", async (run) => {
      this.#mustMatch("reduceScatter", "inputs", inputs, output);
      await this.#runReduceScatter(run, output, await concatenate(inputs, output), op);
    });
  }

  /** Combines segment `r` of all ranks' inputs, cut into as many equal segments as there are ranks, into the output of rank `r`. */
  reduceScatterTensor(output: Values, input: Values, op: ReduceOp = "sum"): Work {
    return this.#collective("reduceScatterTensor", async (run) => {
      this.#mustDivide("reduceScatterTensor", input, output);
      await this.#runReduceScatter(run, output, await read(input), op);
    });
  }

  /** Rank `r` gets `inputs[r]` of rank `s` in its `outputs[s]`. Lengths may differ, as long as both sides of each pair agree. */
  allToAll(outputs: readonly Values[], inputs: readonly Values[]): Work {
    return this.#collective("allToAll", async (run) => {
      const [first] = inputs;
      if (first === undefined || inputs.length !== this.worldSize || outputs.length !== this.worldSize)
        throw new RangeError(
          `allToAll takes ${this.worldSize} inputs and outputs in a world of ${this.worldSize}, and got ${inputs.length} and ${outputs.length}.`,
        );
      const type = typeOf(first);
      for (const values of [...inputs, ...outputs])
        if (typeOf(values) !== type)
          throw new TypeError(`allToAll takes values of one type, and got ${type.name} and ${typeOf(values).name}.`);
      const inputStart = boundariesOf(inputs.map(lengthOf));
      const outputStart = boundariesOf(outputs.map(lengthOf));
      const input = await concatenate(inputs, first);
      const output = Elements.allocate(type, outputStart(this.worldSize));
      const { rank } = this;
      const own = input.slice(inputStart(rank), inputStart(rank + 1));
      if (own.length !== outputStart(rank + 1) - outputStart(rank))
        throw new RangeError(
          `allToAll: input ${rank} has ${own.length} values, and output ${rank} of the same rank ${outputStart(rank + 1) - outputStart(rank)}.`,
        );
      output.copyFrom(own, outputStart(rank));
      await run({
        detail: `of ${type.name} values`,
        schedule: this.#together(allToAllDirect(this.#place, inputStart, outputStart)),
        input,
        output,
        reduction: null,
      });
      spread(output, outputs);
    });
  }

  /** Completes once every rank has called it. */
  barrier(): Work {
    return this.#collective("barrier", (run) => {
      const nothing = Elements.allocate(elementTypes.uint8, 0);
      return run({
        detail: "of all ranks",
        schedule: dissemination(this.#place),
        input: nothing,
        output: nothing,
        reduction: null,
      });
    });
  }

  /**
   * A barrier that tells who is missing: rank 0 waits for all, and then lets all pass, or fails everyone that came with the others' numbers.
   */
  monitoredBarrier(timeoutMilliseconds?: number): Work {
    return monitoredBarrier(this.#world, this.#id, this.ranks, timeoutMilliseconds ?? this.#world.timeoutMilliseconds);
  }

  /**
   * Sends `values` to a rank, which receives them by `recv` with the same tag, type and length. Completes when they are with the network.
   * @param tag tells apart what two ranks send each other; an integer from 0 to 2^31 - 1.
   */
  send(values: Values, destination: number, tag = 0): Work {
    const peer = this.#peer(destination, tag, "send");
    const title = `Send to rank ${destination}, tag ${tag},`;
    return new GroupWork(title, async (started) => {
      const data = await read(values);
      await started(this.#world.mailbox.send(this.#world.linkTo(peer), data, { group: this.#id, tag }, title));
    });
  }

  /** Receives into `values` what rank `source` sends with this tag. */
  recv(values: Values, source: number, tag = 0): Work {
    const peer = this.#peer(source, tag, "recv");
    const title = `Recv from rank ${source}, tag ${tag},`;
    return new GroupWork(title, async (started) => {
      const data = place(values);
      await started(this.#world.mailbox.receive(peer, data, { group: this.#id, tag }, title));
      write(values, data);
    });
  }

  /** The same as `send`, which returns at once too; it is here for the name that PyTorch gives it. */
  isend(values: Values, destination: number, tag = 0): Work {
    return this.send(values, destination, tag);
  }

  irecv(values: Values, source: number, tag = 0): Work {
    return this.recv(values, source, tag);
  }

  /** Starts all of them; nothing waits for anything else. */
  batchIsendIrecv(operations: readonly PointToPoint[]): Work[] {
    return operations.map(({ op, values, peer, tag = 0 }) =>
      op === "isend" ? this.isend(values, peer, tag) : this.irecv(values, peer, tag),
    );
  }

  /** Keys and values that all ranks of the world share, kept by its rank 0. */
  get store(): Store {
    return this.#world.store;
  }

  /** The last collectives of this rank, a line each. */
  dumpFlightRecorder(): string {
    return this.#world.recorder.dump();
  }

  /** Runs a collective of several steps, as the object collectives are. For use within the library. */
  collective(name: string, count: number, body: (run: Run) => Promise<void>): Work {
    return this.#exchange.collective(name, count, body);
  }

  /** Ends every collective under way, and the group, on all ranks. Messages go on. */
  abort(reason: string): void {
    this.#exchange.abort(reason);
  }

  /** Leaves the group. What this rank sent is still delivered; the others can't run further collectives of it. */
  destroy(): void {
    if (this.#id === 0) {
      this.#world.leave();
      return;
    }
    this.#exchange.end(destroyed);
    this.#world.removeGroup(this.#id);
  }

  get #place(): Place {
    return this.#exchange.place;
  }

  #collective(name: string, body: (run: Run) => Promise<void>): Work {
    return this.#exchange.collective(name, 1, body);
  }

  /** Where some rank doesn't depend on all others, all end together, so that whatever fails one fails all. */
  #together(schedule: Schedule): Schedule {
    return inSequence(schedule, dissemination(this.#place));
  }

  async #runAllGather(run: Run, whole: Elements, data: Elements, detail: string): Promise<void> {
    const start = evenBoundaries(whole.length, this.worldSize);
    whole.copyFrom(data, start(this.rank));
    const choose = chooseAllGather(whole.length * whole.type.bytes);
    await run({ detail, schedule: choose(this.#place, start), input: data, output: whole, reduction: null });
  }

  async #runReduceScatter(run: Run, output: Values, input: Elements, op: ReduceOp): Promise<void> {
    const reduction = reductionOf(op, input.type, this.worldSize);
    const data = place(output);
    if (this.worldSize === 1) data.copyFrom(input);
    const start = evenBoundaries(input.length, this.worldSize);
    const choose = chooseReduceScatter(input.length * input.type.partialBytes);
    await run({
      detail: `(${op}) of ${describeValues(output)}`,
      schedule: choose(this.#place, start),
      input,
      output: data,
      reduction,
    });
    write(output, data);
  }

  #mustBeRank(operation: string, rank: number): void {
    if (!Number.isInteger(rank) || rank < 0 || rank >= this.worldSize)
      throw new RangeError(`${operation}: there is no rank ${rank} in a group of ${this.worldSize}.`);
  }

  /** @returns the list, of which there is one for each rank, each like `one`. */
  #mustMatch(operation: string, what: string, list: readonly Values[] | null, one: Values): readonly Values[] {
    if (list === null || list.length !== this.worldSize)
      throw new RangeError(
        `${operation} takes ${this.worldSize} ${what} in a world of ${this.worldSize}, and got ${list?.length ?? "none"}.`,
      );
    for (const [rank, values] of list.entries())
      if (describeValues(values) !== describeValues(one))
        throw new RangeError(
          `${operation}: number ${rank} of the ${what} is ${describeValues(values)}, and should be ${describeValues(one)} like the rest.`,
        );
    return list;
  }

  #mustDivide(operation: string, whole: Values, part: Values): void {
    if (typeOf(whole) !== typeOf(part) || lengthOf(whole) !== lengthOf(part) * this.worldSize)
      throw new RangeError(
        `${operation}: ${describeValues(whole)} isn't ${this.worldSize} times as long as ${describeValues(part)}, as it must be in a world of ${this.worldSize}.`,
      );
  }

  /** The rank in the world. */
  #peer(rank: number, tag: number, operation: string): number {
    const peer = this.ranks[rank];
    if (peer === undefined || rank === this.rank)
      throw new RangeError(`${operation}: rank ${rank} isn't another rank of a world of ${this.worldSize}.`);
    if (!Number.isInteger(tag) || tag < 0 || tag >= firstReservedTag)
      throw new RangeError(`${operation}: a tag is an integer from 0 to 2^31 - 1, and got ${tag}.`);
    return peer;
  }

  #mustBeWorld(operation: string): void {
    if (this.#id !== 0) throw new RangeError(`${operation}: groups are made from the group of the whole world.`);
  }
}

function worldOf(options: ProcessGroupOptions): Membership {
  const { network, members, timeoutMilliseconds = 60_000, chunkBytes = defaultChunkBytes, clock = realClock } = options;
  const world = new World({ network, members, timeoutMilliseconds, chunkBytes, clock });
  return { world, id: world.nextGroup(), ranks: members.map((_, rank) => rank) };
}

/** All values one after another. @param like gives the type. */
async function concatenate(list: readonly Values[], like: Values): Promise<Elements> {
  const parts = await Promise.all(list.map(read));
  const start = boundariesOf(parts.map((part) => part.length));
  const whole = Elements.allocate(typeOf(like), start(parts.length));
  for (const [index, part] of parts.entries()) whole.copyFrom(part, start(index));
  return whole;
}

/** Cuts a whole into the values of a list, one after another. */
function spread(whole: Elements, list: readonly Values[]): void {
  let at = 0;
  for (const values of list) {
    const end = at + lengthOf(values);
    const target = place(values);
    target.copyFrom(whole.slice(at, end));
    write(values, target);
    at = end;
  }
}
