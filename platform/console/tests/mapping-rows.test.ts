import assert from "node:assert/strict";
import { test } from "node:test";
import { changesOf, moveRow, partText, pasteCells, placeOf, readCell, reshaped, type Row, withCell, wrongOf } from "../mapping/rows.ts";

const SHORT: Row = ["A", "a", "甲", "STA", "$AdapterID-1.t", "x / 10"];
const EVENT: Row = ["HOT", "", "", "EVNT", "$AdapterID-1.t", "x / 10", "x > 120"];
const LONG: Row = ["AVG", "", "", "STT", "Changed", "600", "", { fn: "avg", of: "A" }];

test("parts stand where rows of their length have them", () => {
  assert.deepEqual([SHORT, EVENT, LONG].map((row) => placeOf(row, "argument")), [5, 5, 7]);
  assert.deepEqual([SHORT, EVENT, LONG].map((row) => placeOf(row, "trigger")), [null, null, 4]);
  assert.deepEqual([SHORT, EVENT, LONG].map((row) => placeOf(row, "condition")), [null, 6, null]);
  assert.equal(partText(LONG, "argument"), '{"fn":"avg","of":"A"}');
});

test("a cell that is not touched stays what it is, and arguments stay arrays and objects", () => {
  const rows = [LONG];
  assert.equal(withCell(rows, 0, 7, partText(LONG, "argument")), rows);
  assert.deepEqual(withCell(rows, 0, 7, '["<", 50]')[0]?.[7], ["<", 50]);
  assert.equal(readCell("{CH-1} * 2"), "{CH-1} * 2");
  assert.equal(readCell("12"), "12");
});

test("rows change their form and keep what the form has a place for", () => {
  assert.deepEqual(reshaped(SHORT, 8), ["A", "a", "甲", "STA", "Changed", "$AdapterID-1.t", "", "x / 10"]);
  assert.deepEqual(reshaped(reshaped(SHORT, 8), 6), SHORT);
  assert.deepEqual(reshaped(EVENT, 8), ["HOT", "", "", "EVNT", "Changed", "$AdapterID-1.t", "@Condition", "x > 120"]);
  assert.deepEqual(reshaped(reshaped(EVENT, 6), 7), ["HOT", "", "", "EVNT", "$AdapterID-1.t", "", "x > 120"]);
  assert.equal(reshaped(LONG, 8), LONG);
});

test("cells from a spreadsheet fill rows, and make those that lack", () => {
  const rows = pasteCells([SHORT], 0, 1, "one\t一\r\ntwo\t二\n", () => ["", "", "", "STA", "", ""]);
  assert.deepEqual(rows.map((row) => row.slice(0, 3)), [["A", "one", "一"], ["", "two", "二"]]);
});

test("rows move within the table alone", () => {
  const rows = [SHORT, EVENT];
  assert.deepEqual(moveRow(rows, 0, 1), [EVENT, SHORT]);
  assert.equal(moveRow(rows, 0, -1), rows);
  assert.equal(moveRow(rows, 1, 1), rows);
});

test("what a draft changes is named by code", () => {
  const changed = [...SHORT.slice(0, 5), "x / 100"];
  const how = (before: Row[], after: Row[]): string[] => changesOf(before, after).map((each) => `${each.how} ${each.code}`);
  assert.deepEqual(how([SHORT, EVENT], [changed, LONG]), ["changed A", "added AVG", "removed HOT"]);
  assert.deepEqual(how([SHORT, EVENT], [EVENT, SHORT]), ["moved HOT", "moved A"]);
  assert.deepEqual(how([SHORT, EVENT], [EVENT]), ["removed A"]);
  assert.deepEqual(how([SHORT], [SHORT]), []);
});

test("a refusal leads to its cell", () => {
  const within = { code: "unexpected_token", parameters: { place: 5 } };
  const reason = { code: "row_column_wrong", parameters: { row: 3, column: 6, reason: within }, field: "script" };
  const place = { row: 2, place: 5, reason: "character 5: expected a value", told: within };
  assert.deepEqual(wrongOf({ info: "script: row 3, column 6: character 5: expected a value", reason }), place);
  const row = { row: 1, place: null, reason: "expected an array", told: undefined };
  assert.deepEqual(wrongOf({ info: "script: row 2: expected an array", reason: undefined }), row);
  assert.equal(wrongOf({ info: "name: too long", reason: undefined }), null);
});
