import assert from "node:assert/strict";
import { test } from "node:test";
import { fill } from "../words/words.ts";

test("values and plurals", () => {
  assert.equal(fill("{n} {n|terminal|terminals} of {name}", { n: 1, name: "A" }, "en"), "1 terminal of A");
  assert.equal(fill("{n} {n|terminal|terminals}", { n: 12_000 }, "en"), "12,000 terminals");
  assert.equal(fill("{n} 台终端", { n: 3 }, "zh"), "3 台终端");
});

test("a value is text, and not filled again", () => {
  assert.equal(fill("{name} {other}", { name: "{other}" }, "en"), "{other} {other}");
});
