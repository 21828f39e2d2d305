import type { ProcessGroup } from "./processGroup";
import { CollectiveError } from "./work";

export interface JoinOptions {
  /**
   * Whether gradients are divided by the world's size all along, so that each sample counts the same; otherwise by the number of ranks
   * that still have inputs. Default: true.
   */
  readonly divideByInitialWorldSize?: boolean;
  /** Whether all ranks fail as soon as one has run out of inputs before the others. Default: false. */
  readonly throwOnEarlyTermination?: boolean;
  /** Whether anything is done at all; false where inputs are known to be even. Default: true. */
  readonly enable?: boolean;
}

export type JoinSettings = Required<JoinOptions>;

/** What takes part in a join. Every step of its own begins with a header that is summed over all ranks. */
export interface Joinable<Header extends { readonly active: number; readonly ending: number }> {
  readonly group: ProcessGroup;
  /** Called at the beginning, and with null at the end. */
  begin(settings: JoinSettings | null): void;
  /** Says in place of a step's header that this rank has no inputs any more. @returns the sums over all ranks. */
  announce(ending: boolean): Promise<Header>;
  /** Runs the collectives of a step that others make, giving nothing to it. */
  shadow(header: Header): Promise<void>;
  /** Makes this rank's state that of another. */
  takeOver(source: number): Promise<void>;
}

/**
 * Runs `body`, and then the others' steps until every rank's has ended.
 * @throws CollectiveError where one ends early and that is to be an error; whatever `body` throws, which the others learn by their time-outs.
 */
export async function runJoined<Header extends { readonly active: number; readonly ending: number }>(
  joinable: Joinable<Header>,
  body: () => Promise<void>,
  { divideByInitialWorldSize = true, throwOnEarlyTermination = false, enable = true }: JoinOptions,
): Promise<void> {
  if (!enable) {
    await body();
    return;
  }
  const { group } = joinable;
  joinable.begin({ divideByInitialWorldSize, throwOnEarlyTermination, enable });
  try {
    await body();
    let shadowed = 0;
    for (;;) {
      const header = await joinable.announce(throwOnEarlyTermination);
      if (header.active === 0) break;
      if (header.ending > 0)
        throw new CollectiveError(
          `Rank ${group.rank} ran out of inputs while ${header.active} of ${group.worldSize} ranks still had some, so all end here, as throwOnEarlyTermination demands.`,
        );
      await joinable.shadow(header);
      shadowed += 1;
    }
    // Those that shadowed nothing trained to the end; the highest rank of them is everyone's source.
    const source = Int32Array.of(shadowed === 0 ? group.rank : -1);
    await group.allReduce(source, "max").wait();
    await joinable.takeOver(source[0]!);
  } finally {
    joinable.begin(null);
  }
}
