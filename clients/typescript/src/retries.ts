/** When a request is sent again: only where it was certainly not carried out, or where it reads. */
import { GatewayError, NotSent, Unreachable } from "./gateway.ts";

export interface Retries {
  /** How often a request is sent again at most. */
  most: number;
  /** The longest pause in milliseconds that the platform may ask for; beyond it the refusal is thrown. */
  patienceMs: number;
}

export const RETRIES: Retries = { most: 3, patienceMs: 10_000 };

const FIRST_PAUSE_MS = 100;
const LONGEST_PAUSE_MS = 2_000;
const BUSY = [429, 503];
const READS = /^apiproxy\/api\/(get_\w+|search|ping|check_mapping)$/;

/** Whether a request only reads, so that nothing happens twice if it is sent twice. */
export function isReading(path: string): boolean {
  return READS.test(path);
}

/** Milliseconds until a request is sent for the `attempt`th time again (from 1); undefined: not any more. */
export function pauseMs(retries: Retries, attempt: number, path: string, error: unknown): number | undefined {
  if (attempt > retries.most) return undefined;
  if (error instanceof NotSent || (error instanceof Unreachable && isReading(path))) {
    return Math.min(FIRST_PAUSE_MS * 2 ** (attempt - 1), LONGEST_PAUSE_MS) * (0.5 + Math.random() / 2);
  }
  if (!(error instanceof GatewayError) || !BUSY.includes(error.status) || error.retryAfterS === undefined) return undefined;
  const askedMs = error.retryAfterS * 1_000;
  return askedMs <= retries.patienceMs ? askedMs : undefined;
}

/** Waits; throws the signal's reason where it is aborted. */
export function sleep(ms: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const stop = (): void => {
      clearTimeout(timer);
      reject(signal?.reason as Error);
    };
    const timer = setTimeout(() => {
      signal?.removeEventListener("abort", stop);
      resolve();
    }, ms);
    if (signal?.aborted) stop();
    else signal?.addEventListener("abort", stop, { once: true });
  });
}
