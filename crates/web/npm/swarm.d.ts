/** Why a page cannot be a worker; the message is for people. */
export class SwarmError extends Error {
  readonly code: "bad_request" | "insecure_context" | "no_webgpu" | "no_hub" | "refused" | "token" | "plan" | "device_lost";
}

/** The share of a page at present. */
export interface SwarmStatus {
  /** `stopped` and `failed` are the last ones. */
  state: "connecting" | "loading" | "working" | "waiting" | "stopped" | "failed";
  /** Why it waits, or has failed; else empty, as after `stop`. */
  reason: string;
  /** The address of the hub. */
  hub: string;
  /** The GPU as the browser names it. */
  device: string;
  /** Bytes that were given for experts, and bytes of all buffers in use. */
  memory: number;
  used: number;
  /** Bytes of experts in the page's private file system. */
  kept: number;
  /** Units of experts that are held, and that the hub has assigned. */
  units: number;
  assigned: number;
  /** Tasks and products that were computed, and products a second lately. */
  tasks: number;
  rows: number;
  rate: number;
}

export interface SwarmOptions {
  /** The token of the swarm, 32 hexadecimal digits. Both sides prove that they have it; it is not sent. */
  token?: string;
  /** Bytes for experts, 1 GiB by default. */
  memory?: number;
  /**
   * Bytes of experts that this job may have in the page's private file system, for the next time; none by default.
   * Experts that were written first go first. Private windows keep nothing.
   */
  keep?: number;
  /** A name that the hub shows. */
  name?: string;
  /** Called after every change; for tasks four times a second at most. */
  onStatus?: (status: SwarmStatus) => void;
}

export interface SwarmJob {
  readonly status: SwarmStatus;
  /** Ends the work at once. */
  stop(): void;
  /** The last status, once the job is stopped or has failed. */
  readonly done: Promise<SwarmStatus>;
}

/**
 * Computes experts for the hub at an address (`ws://`, `wss://`, `http://` or `https://`) until the job is stopped. The
 * page sees hidden states of texts: ask its user first. Rejects with a {@link SwarmError} without WebGPU.
 */
export function work(url: string, options?: SwarmOptions): Promise<SwarmJob>;

/** Removes the experts that pages of this origin keep. Rejects if another tab is writing one at this moment. */
export function forget(): Promise<void>;
