import assert from "node:assert/strict";
import { test } from "node:test";
import { GatewayError } from "terrazzo-client";
import { readPatiently } from "../shell/patience.ts";

const BUSY = new GatewayError(500, "mapping trials: 4 of your company wait already", 429, {}, undefined, 3);

/** Reads that fail so often, and what was waited for between them. */
function reading(failures: number, error: Error = BUSY) {
  const abort = new AbortController();
  const waited: number[] = [];
  let asked = 0;
  const read = (): Promise<string> => {
    asked += 1;
    return asked > failures ? Promise.resolve("there") : Promise.reject(error);
  };
  const wait = (ms: number): Promise<void> => {
    waited.push(ms);
    return Promise.resolve();
  };
  return { abort, waited, asked: () => asked, ask: () => readPatiently(read, abort.signal, wait) };
}

test("a platform at a limit is asked again when it says", async () => {
  const { ask, waited } = reading(2);
  assert.equal(await ask(), "there");
  assert.deepEqual(waited, [3_000, 3_000]);
});

test("another refusal is told at once", async () => {
  const error = new GatewayError(10401, "uid: is required", 200);
  const { ask, asked } = reading(1, error);
  await assert.rejects(ask, error);
  assert.equal(asked(), 1);
});

test("it ends: a limit that stays is told", async () => {
  const { ask, asked } = reading(1_000);
  await assert.rejects(ask, BUSY);
  assert.equal(asked(), 10);
});

test("a long wait is told at once", async () => {
  const { ask, asked } = reading(1_000, new GatewayError(500, "too many", 429, {}, undefined, 60));
  await assert.rejects(ask);
  assert.equal(asked(), 1);
});

test("who left the page asks no more", async () => {
  const { ask, abort, asked } = reading(1_000);
  abort.abort();
  await assert.rejects(ask);
  assert.equal(asked(), 1);
});

test("a pause ends when the page is left", async () => {
  const abort = new AbortController();
  const reading = readPatiently(() => Promise.reject(new GatewayError(500, "busy", 429, {}, undefined, 5)), abort.signal);
  setImmediate(() => abort.abort());
  await assert.rejects(reading, /busy/);
});
