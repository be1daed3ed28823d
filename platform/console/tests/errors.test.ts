import assert from "node:assert/strict";
import { test } from "node:test";
import { GatewayError } from "terrazzo-client";
import { explain } from "../words/errors.ts";
import { language } from "../words/words.ts";

const FULL = "file: no space is left on the platform's disk; nothing was kept";

test("a full disk is told as that in either language, whatever words the reason has there", () => {
  for (const shown of ["en", "zh"] as const) {
    language.value = shown;
    const told = explain(new GatewayError(500, FULL, 503, {}, { code: "file_no_space", parameters: {} }));
    assert.notEqual(told.todo, explain(new GatewayError(500, "too many requests wait", 503)).todo);
  }
  language.value = "en";
});

test("each kind of refusal has words of its own, and says what to do", () => {
  const told = [10401, 10402, 10403, 10404].map((code) => explain(new GatewayError(code, "why", 200)));
  const others = [explain(new GatewayError(500, "why", 429)), explain(new GatewayError(500, "why", 500)), explain(new Error("why"))];
  const whats = [...told, ...others].map((each) => each.what);
  assert.ok(new Set(whats).size >= 6, whats.join("\n"));
  for (const each of [...told, ...others]) assert.ok(each.todo.length > 5, each.what);
});
