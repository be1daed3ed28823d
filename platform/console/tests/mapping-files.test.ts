import assert from "node:assert/strict";
import { test } from "node:test";
import { BadFile, readCsv, readTable, writeCsv } from "../mapping/files.ts";
import { readStates, statesText } from "../mapping/states.ts";

const ROWS = [
  ["A", 'say "so"', "甲, 乙", "STA", "$AdapterID-1.t", " x\n+ 1 "],
  ["AVG", "", "", "STT", "Changed", "600", "", { fn: "avg", of: "A" }],
];

test("what is written is read again", () => {
  assert.deepEqual(readCsv(writeCsv(ROWS)), ROWS);
  assert.deepEqual(readTable(writeCsv(ROWS), [6, 7, 8]), ROWS);
  assert.deepEqual(readTable(JSON.stringify(ROWS), [6, 7, 8]), ROWS);
  assert.deepEqual(readTable(JSON.stringify({ name: "n", script: ROWS }), [6, 7, 8]), ROWS);
});

test("no cell of a file is a formula, and each comes back", () => {
  const rows = [["=HYPERLINK(1)", "\uff1d1", "\n=1", "STA", "-$AdapterID-1.t", "'=1"]];
  const lines = writeCsv(rows).slice(1);
  for (const cell of lines.trim().split(/,(?=")|(?<="),|,/)) assert.doesNotMatch(cell, /^"?[=+\-@\t\r\n\uff1d]/);
  assert.deepEqual(readCsv(writeCsv(rows)), rows);
});

test("a file that is no table says why", () => {
  const why = (text: string): string => {
    try {
      readTable(text, [6]);
    } catch (error) {
      if (error instanceof BadFile) return `${error.why} ${error.row}`;
    }
    return "";
  };
  assert.deepEqual(['[["A"', '{"a": 1}', "a,b,c\n", 'a,"b', `[${'["","","","","",""],'.repeat(1_000)}["","","","","",""]]`, "[1]"].map(why), [
    "json 0", "rows 0", "width 1", "quote 1", "large 0", "width 1",
  ]);
});

test("names of states stand in a line", () => {
  const states = { "0": { label_en: "Off", label_cn: "关" }, true: { label_en: "On" }, auto: { label_cn: "自动" } };
  assert.equal(statesText(states), "0=Off|关; true=On; auto=|自动");
  assert.deepEqual(readStates(statesText(states)), states);
  assert.deepEqual(readStates(""), {});
  assert.equal(readStates("1"), null);
  assert.equal(readStates("=x"), null);
  assert.equal(readStates("1="), null);
});
