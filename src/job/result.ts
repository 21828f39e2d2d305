import type { MemberId } from "../transport/link";
import type { Validation } from "./snapshot";
import type { JobSpec } from "./spec";

/** What a job came to, as this tab knows it. */
export interface JobResult {
  readonly spec: JobSpec;
  readonly steps: number;
  readonly losses: readonly number[];
  readonly validation: Validation | null;
  readonly samplesPerSecond: number;
  readonly stepMilliseconds: { readonly median: number; readonly p95: number };
  readonly self: {
    readonly id: MemberId;
    readonly rank: number | null;
    /** SHA-256 of the flat weights as little-endian bytes, hex; empty for one that only watched. */
    readonly weightsHash: string;
    /** What the steps' all-reduces moved, frames' headers included. */
    readonly bytesSent: number;
    readonly bytesReceived: number;
    /** The same without headers. */
    readonly gradientBytesSent: number;
    readonly gradientBytesReceived: number;
    /** All bytes over this member's links: heartbeats, membership and state transfers too. */
    readonly linkBytesSent: number;
    readonly linkBytesReceived: number;
    readonly samples: number;
  };
}

export interface JobAuditLine {
  readonly step: number;
  readonly member: MemberId;
  readonly rank: number;
  readonly samples: readonly number[];
}
