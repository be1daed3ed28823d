import assert from "node:assert/strict";
import { test } from "node:test";
import { merged } from "../objects/log-entries.ts";

const rows = (...ids: number[]): { place: string }[] => ids.map((id) => ({ place: `1.0.${id}` }));

test("the newest page comes over what was read, and what was read before stays", () => {
  const was = { rows: rows(5, 4, 3, 2), next: "older" };
  assert.deepEqual(merged(was, { rows: rows(6, 5, 4), next: "n" }), { rows: rows(6, 5, 4, 3, 2), next: "older" });
  assert.deepEqual(merged(null, was), was);
});

test("where something is missing between them the newest page counts alone", () => {
  const newest = { rows: rows(9, 8), next: "n" };
  assert.deepEqual(merged({ rows: rows(2, 1), next: "" }, newest), newest);
  assert.deepEqual(merged({ rows: [], next: "" }, { rows: rows(1), next: "" }), { rows: rows(1), next: "" });
});
