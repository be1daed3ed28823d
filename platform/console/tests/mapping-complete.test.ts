import assert from "node:assert/strict";
import { test } from "node:test";
import { completeCell, completed, completeExpression, pointsOf } from "../mapping/complete.ts";

const CODES = ["SUPPLY", "RETURN", "CH-1"].map((text) => ({ text, note: "" }));

test("points are those that messages have, with their last values", () => {
  const messages = [
    { terminal_id: "b", points: { pump: { flow: 80, on: true } } },
    { terminal_id: "a", points: { t: 70 } },
    { terminal_id: "a", points: { t: 71 } },
    { terminal_id: "stranger", points: { z: 1 } },
    { terminal_id: "a", points: [1] },
  ];
  const found = pointsOf(messages, ["a", "b"]);
  assert.deepEqual(found.map((each) => [each.text, each.note]), [["$AdapterID-1.t", "71"], ["$AdapterID-2.pump.flow", "80"], ["$AdapterID-2.pump.on", "true"]]);
  assert.deepEqual(completeCell("flow", found).choices.map((each) => each.text), ["$AdapterID-2.pump.flow"]);
  assert.equal(completeCell("", found).choices.length, 3);
});

test("the word before the caret is completed, and a code that is no name gets braces", () => {
  const found = completeExpression("x + su * 2", 6, CODES);
  assert.deepEqual(found.choices[0], { text: "SUPPLY", note: "" });
  assert.deepEqual(completed("x + su * 2", found, found.choices[0] as { text: string; note: string }), { text: "x + SUPPLY * 2", caret: 10 });
  assert.deepEqual(completeExpression("ch", 2, CODES).choices[0]?.text, "{CH-1}");
  const braced = completeExpression("1 + {ch", 7, CODES);
  assert.equal(completed("1 + {ch", braced, { text: "{CH-1}", note: "" }).text, "1 + {CH-1}");
  assert.deepEqual(completeExpression("x + ", 4, CODES).choices, []);
  assert.equal(completeExpression("rou", 3, CODES).choices[0]?.text, "round(");
});
