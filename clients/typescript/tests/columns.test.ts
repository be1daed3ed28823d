import assert from "node:assert/strict";
import { test } from "node:test";
import { readColumns } from "../src/gateway.ts";

test("columns are read as they come", () => {
  const text = JSON.stringify({ columns: [{ key: "T", points: 2 }, { key: "温度", points: 0 }, { key: "P", points: 1 }], before: { 温度: { time: 3, value: 4.5 } } });
  const head = new TextEncoder().encode(text);
  const length = Math.ceil(head.length / 8) * 8;
  const buffer = new ArrayBuffer(16 + length + 6 * 8);
  new Uint8Array(buffer).set(new TextEncoder().encode("TZCOL1"));
  new DataView(buffer).setUint32(8, length, true);
  new Uint8Array(buffer, 16, length).fill(32);
  new Uint8Array(buffer).set(head, 16);
  new Float64Array(buffer, 16 + length).set([1, 2, 21.5, -3, 7, 0.1]);
  assert.deepEqual(readColumns(buffer), { T: { times: [1, 2], values: [21.5, -3] }, 温度: { times: [], values: [], before: { time: 3, value: 4.5 } }, P: { times: [7], values: [0.1] } });
});
