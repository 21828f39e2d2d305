import { isMemberId } from "../transport/memberId";
import { parseManifest } from "./manifest";
import {
  amount,
  boolean,
  type Infer,
  integer,
  list,
  matching,
  measured,
  nullable,
  object,
  oneOf,
  parsed,
  type Schema,
  SchemaError,
  text,
} from "./schema";

/** The most members and watchers that a job has, and the most bytes of a control frame's payload. */
export const maxMembers = 64;
export const maxControlBytes = 60 * 1024;
/** Losses in one status; a watcher that misses more asks for the history. */
export const maxLossesInStatus = 400;

const id = matching(isMemberId, "a member's id");
const hash = matching((value): value is string => /^[0-9a-f]{64}$/.test(value), "a SHA-256 in hex");
const epoch = integer(0, 0xffff_ffff);
const step = integer(0, 1_000_000);
const sentence = text(600);
const name = text(64);
const gpu = object({ vendor: text(128), architecture: text(128), description: text(256) });
/** What the members do with a generation. `until`: resume by itself once there are so many members; 0 for never. */
const run = object({
  kind: oneOf("training", "paused", "stopped"),
  by: name,
  reason: sentence,
  until: integer(0, maxMembers),
});
const timing = object({ compute: amount, wire: amount, optimizer: amount, total: amount });
const memberIds = list(id, maxMembers);
const stateKind = oneOf("buckets", "training", "history");

/**
 * Control messages between members and watchers. The types, the checks and the documentation of the protocol are this
 * table; docs/architecture.md tells how they play together.
 */
const fieldsOf = {
  /** First on each link, from both sides. */
  hello: { name, gpu, member: boolean },
  /** A member's answer to the hello of one who isn't. */
  welcome: { manifest: parsed(parseManifest), epoch, members: memberIds },

  /** To the coordinator: take me in, or let me go at the next boundary. */
  join: {},
  leave: {},
  /** To the coordinator: pause, resume or stop for everyone. */
  command: { run },
  /** To all: I am gone from this moment on. */
  goodbye: {},
  /** To the coordinator, or to who should be: the step failed or a link is gone. */
  trouble: { epoch, lost: nullable(id), sentence },

  /** The coordinator forms a generation: stop before starting step `boundary` (0: at once), then report. */
  prepare: { epoch, boundary: step, members: memberIds, reason: sentence },
  report: {
    epoch,
    /** Committed steps; -1 without any state. */
    committed: integer(-1, 1_000_000),
    /** Whether the reduced buckets of the last committed step are held. */
    buckets: boolean,
    /** The number of committed steps at the latest validation. */
    validated: step,
    /** Whether this member's GPU still works on something. */
    computing: boolean,
    samplesPerSecond: amount,
    links: list(id, 4 * maxMembers),
  },
  /** An answer to `prepare`: that epoch is taken; or there is a coordinator that comes before you. */
  stale: { epoch },
  outranked: { epoch, coordinator: id },
  /** Coordinator to member: dial `peer` through me; and how that went (null: well). */
  connect: { epoch, peer: id },
  connected: { epoch, peer: id, problem: nullable(sentence) },
  /** Coordinator to member: send `to` what it lacks. */
  serve: { epoch, to: id, what: stateKind },
  /** Announces state frames; the receiver checks every number against the manifest before it allocates. */
  offer: {
    epoch,
    what: stateKind,
    committed: step,
    optimizerSteps: step,
    skips: integer(0, 1_000_000),
    lossesFrom: step,
    losses: step,
    validations: step,
    elapsedMilliseconds: amount,
    bytes: integer(0, 2 ** 40),
    hash,
  },
  /** To the coordinator: what was offered is taken in. */
  synced: { epoch, committed: step },
  generation: {
    epoch,
    /** In ring order; the first is the coordinator. */
    members: list(object({ id, from: integer(0, 8192), count: integer(0, 8192) }), maxMembers),
    startStep: step,
    /** Begin with the validation at `startStep` where one is due: somebody hasn't got it. */
    validate: boolean,
    run,
    reason: sentence,
  },
  /** You are no member any more; null when you asked for it. */
  released: { epoch, problem: nullable(sentence) },
  /** An answer to `join`. */
  declined: { sentence },

  /** A member to the coordinator, a few times a second. */
  telemetry: {
    samplesPerSecond: amount,
    timing,
    samples: integer(0, 2 ** 52),
    bytesInPerSecond: amount,
    bytesOutPerSecond: amount,
    /** SHA-256 of the weights after `step` committed steps. */
    weights: nullable(object({ step, hash })),
  },
  /** The coordinator to everyone, a few times a second. */
  status: {
    epoch,
    step,
    run,
    finished: boolean,
    lossesFrom: step,
    losses: list(measured, maxLossesInStatus),
    validations: list(object({ step, loss: measured, accuracy: measured }), 50),
    members: list(
      object({
        id,
        name,
        gpu,
        share: amount,
        samples: integer(0, 2 ** 52),
        bytesInPerSecond: amount,
        bytesOutPerSecond: amount,
      }),
      maxMembers,
    ),
    joining: memberIds,
    watchers: integer(0, 10_000),
    samplesPerSecond: amount,
    timing,
    elapsedMilliseconds: amount,
    remainingMilliseconds: nullable(amount),
  },
  /** A watcher asks for the curves from the beginning. */
  history: {},
  /** Something that every person should know. */
  notice: { level: oneOf("info", "warning", "error"), sentence },
} as const;

type Fields = typeof fieldsOf;
export type MessageKind = keyof Fields;
export type ControlMessage = {
  [Kind in MessageKind]: { readonly kind: Kind } & {
    readonly [Key in keyof Fields[Kind]]: Infer<Fields[Kind][Key]>;
  };
}[MessageKind];
export type MessageOf<Kind extends MessageKind> = Extract<ControlMessage, { readonly kind: Kind }>;

export type RunState = Infer<typeof run>;
export type StateKind = Infer<typeof stateKind>;
export type Generation = MessageOf<"generation">;
export type Report = MessageOf<"report">;
export type Offer = MessageOf<"offer">;
export type Status = MessageOf<"status">;
export type Telemetry = MessageOf<"telemetry">;

const schemas = new Map<string, Schema<object>>(
  Object.entries(fieldsOf).map(([kind, fields]) => [kind, object({ kind: oneOf(kind), ...fields })]),
);

const encoder = new TextEncoder();
const decoder = new TextDecoder("utf-8", { fatal: true });

/** @throws RangeError when the message is too long for a control frame, which is a mistake of the sender's program. */
export function encodeMessage(message: ControlMessage): Uint8Array<ArrayBuffer> {
  const bytes = encoder.encode(JSON.stringify(message));
  if (bytes.length > maxControlBytes)
    throw new RangeError(`A ${message.kind} message has ${bytes.length} bytes; ${maxControlBytes} fit in a frame.`);
  return bytes;
}

/**
 * Reads a control message from outside.
 * @throws SchemaError with a sentence on what is wrong with it; whoever sent it is to be dropped.
 */
export function decodeMessage(bytes: Uint8Array): ControlMessage {
  if (bytes.length > maxControlBytes)
    throw new SchemaError(`A control message has ${bytes.length} bytes; at most ${maxControlBytes} are allowed.`);
  let json: unknown;
  try {
    json = JSON.parse(decoder.decode(bytes));
  } catch {
    throw new SchemaError("A control message isn't JSON.");
  }
  const kind = typeof json === "object" && json !== null && "kind" in json ? json.kind : undefined;
  const known = typeof kind === "string" ? schemas.get(kind) : undefined;
  if (known === undefined) throw new SchemaError(`There is no control message ${JSON.stringify(kind)?.slice(0, 60)}.`);
  try {
    return known.check(json, `${kind}`) as ControlMessage;
  } catch (error) {
    if (error instanceof SchemaError) throw new SchemaError(`A control message is malformed: ${error.message}.`);
    throw error;
  }
}
