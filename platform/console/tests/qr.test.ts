import assert from "node:assert/strict";
import { test } from "node:test";
import { alignmentsOf, qrOf, qrPath } from "../parts/qr.ts";

/** Codes of these texts were read by another program (ZXing); the sum tells that they are still the same. */
const READ: readonly (readonly [text: string, size: number, sum: number])[] = [
  ["HELLO", 21, 1159153931],
  ["http://127.0.0.1:31507/#/wall?key=tzw_a1B2a1B2a1B2a1B2a1B2a1B2a1B2a1B2a1B2a1B2a1B2a1B2&rotate=1", 41, 2952824414],
  ["y".repeat(400), 77, 3119309501],
  ["z".repeat(660), 97, 32455563],
  ["w".repeat(14), 21, 3099224699],
  ["w".repeat(15), 25, 3311359265],
];

function sumOf(code: readonly (readonly boolean[])[]): number {
  return code.flat().reduce((sum, isDark) => (Math.imul(sum, 31) + Number(isDark)) >>> 0, 7);
}

test("codes are as another program has read them", () => {
  for (const [text, size, sum] of READ) {
    const code = qrOf(text) ?? [];
    assert.deepEqual([code.length, sumOf(code)], [size, sum], text);
  }
});

test("a text that is too long has no code", () => {
  assert.equal(qrOf("q".repeat(666))?.length, 97);
  assert.equal(qrOf("q".repeat(667)), null);
});

test("alignment patterns lie where the standard has them", () => {
  assert.deepEqual(alignmentsOf(1), []);
  assert.deepEqual(alignmentsOf(2), [6, 18]);
  assert.deepEqual(alignmentsOf(7), [6, 22, 38]);
  assert.deepEqual(alignmentsOf(15), [6, 26, 48, 70]);
  assert.deepEqual(alignmentsOf(20), [6, 34, 62, 90]);
});

test("a code is one path of its dark modules", () => {
  assert.equal(qrPath([[true, false], [false, true]]), "M4,4h1v1h-1zM5,5h1v1h-1z");
});
