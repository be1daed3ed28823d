/** Reading from a platform that is at a limit: it says when it may be asked again. */
import { GatewayError } from "terrazzo-client";

const MOST_TRIES = 10;
const TOO_MANY = 429;
const MOST_WAIT_MS = 5_000; // who has to wait longer is told

/** Calls after a while, unless it is given up before. */
export type Wait = (ms: number, abort: AbortSignal) => Promise<void>;

/**
 * What is read, though the platform asks to come again at first, as where the answer to an earlier question is still being
 * computed. Whoever aborts gets what `read` throws then; after ten times the refusal is told.
 */
export async function readPatiently<T>(read: (abort: AbortSignal) => Promise<T>, abort: AbortSignal, wait: Wait = pause): Promise<T> {
  for (let tries = 1; ; tries += 1) {
    try {
      return await read(abort);
    } catch (error) {
      if (!(error instanceof GatewayError) || error.status !== TOO_MANY) throw error;
      const againMs = 1_000 * (error.retryAfterS ?? 1);
      if (tries === MOST_TRIES || againMs > MOST_WAIT_MS) throw error;
      await wait(againMs, abort);
      if (abort.aborted) throw error;
    }
  }
}

function pause(ms: number, abort: AbortSignal): Promise<void> {
  return new Promise((resume) => {
    const timer = setTimeout(resume, ms);
    abort.addEventListener("abort", () => {
      clearTimeout(timer);
      resume();
    });
  });
}
