import assert from "node:assert/strict";
import { test } from "node:test";
import { pagesSeen, windowOf } from "../parts/window.ts";

test("the window holds what is seen, and never more than there is", () => {
  assert.deepEqual(windowOf(0, 640, 32, 100_000, 10), { first: 0, last: 30 });
  assert.deepEqual(windowOf(32_000, 640, 32, 100_000, 10), { first: 990, last: 1_030 });
  assert.deepEqual(windowOf(99_999 * 32, 640, 32, 100_000, 10), { first: 99_989, last: 100_000 });
  assert.deepEqual(windowOf(5_000, 640, 32, 0, 10), { first: 0, last: 0 });
});

test("pages are those of the rows that are seen", () => {
  assert.deepEqual(pagesSeen(0, 640, 32, 100), [0]);
  assert.deepEqual(pagesSeen(90 * 32, 640, 32, 100), [0, 1]);
  assert.deepEqual(pagesSeen(99_990 * 32, 640, 32, 100), [999, 1000]);
});
