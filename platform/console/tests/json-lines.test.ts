import assert from "node:assert/strict";
import { test } from "node:test";
import { jsonLines, type Line } from "../parts/json-lines.ts";

const textOf = (lines: readonly Line[]): string => lines.map(({ depth, tokens }) => "  ".repeat(depth) + tokens.map((each) => each.text).join("")).join("\n");

test("lines are the JSON of the value, whatever is in it", () => {
  for (const value of [{ a: 1, b: [1, 2, { c: null }], d: { e: { f: "x", g: [] } } }, [], {}, "text", 1.5, true, null, [[1], [{ a: "\n\u202e" }]], { "a\"b": "<b>" }]) {
    assert.deepEqual(JSON.parse(textOf(jsonLines(value).lines)), value);
  }
});

test("what is short stands on one line, and each point on its own", () => {
  assert.equal(textOf(jsonLines({ Temperature: 21.5, State: "on", Phases: [1, 2, 3], At: { x: 1 } }).lines), '{\n  "Temperature": 21.5,\n  "State": "on",\n  "Phases": [1, 2, 3],\n  "At": { "x": 1 }\n}');
  assert.equal(jsonLines(Array.from({ length: 40 }, (_, i) => i + 100)).lines.length, 42);
});

test("types are told apart", () => {
  const kinds = jsonLines({ a: 1, b: "1", c: null }).lines.map(({ tokens }) => tokens.map((each) => each.kind).join(" "));
  assert.deepEqual(kinds, ["mark", "name mark number mark", "name mark text mark", "name mark word", "mark"]);
});

test("of a long or deep value the beginning is told, in little time", () => {
  const long = jsonLines(Array.from({ length: 1_000_000 }, (_, i) => i));
  assert.ok(long.isCut && long.lines.length === 1_000);
  let deep: unknown = 1;
  for (let i = 0; i < 5_000; i += 1) deep = { deep };
  assert.ok(jsonLines(deep).lines.length < 100);
  assert.ok(textOf(jsonLines({ a: "x".repeat(10_000) }).lines).length < 2_100);
});
