import assert from "node:assert/strict";
import { test } from "node:test";
import type { Reason } from "terrazzo-client";
import { ALL_REASONS } from "../words/server-reasons.ts";
import { inChinese, withinOf } from "../words/server-text.ts";

const REQUIRED: Reason = { code: "is_required", parameters: {} };

function placesOf(template: string): string[] {
  return [...template.matchAll(/\{(\w+)\}/g)].map((found) => found[1] ?? "");
}

test("each code is worded with its parameters", () => {
  for (const [code, template] of Object.entries(ALL_REASONS)) {
    const parameters = Object.fromEntries(placesOf(template).map((name) => [name, `<${name}>`]));
    const told = inChinese(ALL_REASONS, { code, parameters });
    assert.ok(told, code);
    for (const name of placesOf(template)) assert.ok(told.includes(`<${name}>`), code);
  }
});

test("fields stand before their reasons, and several are told apart", () => {
  assert.equal(inChinese(ALL_REASONS, { ...REQUIRED, field: "username" }), "username：必填");
  const faults = [
    { ...REQUIRED, field: "username" },
    { code: "expected_length_least", parameters: { kind: "str", least: 8 }, field: "password" },
  ];
  assert.equal(inChinese(ALL_REASONS, { code: "several", parameters: { faults } }), "username：必填；password：长度至少为 8（str）");
});

test("a reason in a reason is worded, too", () => {
  const within: Reason = { code: "no_row_with_code", parameters: { code: "'B'" } };
  const reason: Reason = { code: "row_column_wrong", parameters: { row: 3, column: 6, reason: within }, field: "script" };
  assert.equal(inChinese(ALL_REASONS, reason), "script：第 3 行第 6 列：没有代码为 'B' 的行");
  assert.equal(withinOf(reason), within);
  assert.equal(withinOf(REQUIRED), undefined);
});

test("what nobody knows is left to the text, also within", () => {
  const unknown: Reason = { code: "of_a_newer_platform", parameters: {} };
  assert.equal(inChinese(ALL_REASONS, unknown), null);
  assert.equal(inChinese(ALL_REASONS, { code: "constructor", parameters: {} }), null);
  assert.equal(inChinese(ALL_REASONS, { code: "row_wrong", parameters: { row: 1, reason: unknown } }), null);
});

test("reasons in reasons end", () => {
  let reason: Reason = REQUIRED;
  for (let i = 0; i < 100; i += 1) reason = { code: "row_wrong", parameters: { row: i, reason } };
  assert.equal(inChinese(ALL_REASONS, reason), null);
});
