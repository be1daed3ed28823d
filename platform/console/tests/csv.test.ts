import assert from "node:assert/strict";
import { test } from "node:test";
import { bareText, csvCell, guardFormula } from "../parts/csv.ts";
import { csvOf } from "../shell/download.ts";
import { readCsv } from "../terminals/csv.ts";

test("cells are quoted where they have to be, and never begin a formula", () => {
  const cells: [unknown, string][] = [["a", "a"], ["a,b", '"a,b"'], ['a"b', '"a""b"'], ["=1+1", "'=1+1"], ["@x", "'@x"], [-3.5, "-3.5"], ["-3.5e2", "-3.5e2"], ["-x", "'-x"], [null, ""], [["a"], '"[""a""]"']];
  for (const [value, text] of cells) assert.equal(csvCell(value), text);
  assert.equal(csvOf(["a", "b"], [{ a: 1 }]), "a,b\r\n1,\r\n");
});

test("whatever a spreadsheet would calculate is guarded, and comes back as it was", () => {
  for (const sign of ["=", "+", "-", "@", "\t", "\r", "\n", "\uff1d", "\uff0b", "\uff0d", "\uff20"]) {
    for (const text of [`${sign}1+1`, `'${sign}1`, `''${sign}cmd|' /C calc'!A0`]) {
      assert.equal(guardFormula(text), `'${text}`);
      assert.equal(bareText(guardFormula(text)), text);
      assert.match(csvCell(text), /^"?'/);
    }
  }
  for (const text of ["", "'", "it's", "a=b", " =1"]) assert.equal(bareText(guardFormula(text)), text);
});

test("rows are read by the names of the first line, with the line on which they stand", () => {
  const found = readCsv('\ufeffuid,name\r\npump-1,"one, ""two""\nlines"\r\n\r\npump-2,\r\n');
  assert.deepEqual(found.rows, [{ uid: "pump-1", name: 'one, "two"\nlines' }, { uid: "pump-2" }]);
  assert.deepEqual(found.lines, [2, 5]);
});

test("pasted cells have tabs, and other countries semicolons", () => {
  assert.deepEqual(readCsv("uid\tname\na\tb, c").rows, [{ uid: "a", name: "b, c" }]);
  assert.deepEqual(readCsv("uid;name\na;b").rows, [{ uid: "a", name: "b" }]);
  assert.deepEqual(readCsv("").rows, []);
});
