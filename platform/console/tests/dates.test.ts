import assert from "node:assert/strict";
import { test } from "node:test";
import { readDay } from "../parts/dates.ts";

test("a day is read however its parts are set apart", () => {
  for (const text of ["2026-03-01", "2026/3/1", " 2026.3.01 ", "2026年3月1日", "2026 年 3 月 1 日", "20260301"]) assert.equal(readDay(text), "2026-03-01", text);
});

test("what is no day is not taken for one", () => {
  for (const text of ["", "2026", "2026-13-01", "2026-02-30", "2026-00-10", "26-03-01", "01.03.2026", "2026-03-01 12:00", "today", "0000-01-01"]) assert.equal(readDay(text), null, text);
  assert.equal(readDay("2028-02-29"), "2028-02-29");
});
