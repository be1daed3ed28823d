import assert from "node:assert/strict";
import { test } from "node:test";
import { REASONS } from "../words/server-reasons.ts";
import { inChinese, templatesOf, valuesOf } from "../words/server-text.ts";

const TABLE = templatesOf(REASONS);

test("each reason is worded by its own row, whatever it is filled with", () => {
  for (const [english, chinese] of REASONS) {
    const fill = (text: string) => text.replace(/\{(\d)\}/g, (_, n: string) => `<${n}x>`);
    const told = inChinese(TABLE, fill(english));
    assert.match(told, /[\u4e00-\u9fff]/, english);
    if (!english.startsWith("{0}")) assert.equal(told, fill(chinese), english);
  }
});

test("both languages have the same values", () => {
  const numbers = (text: string) => [...text.matchAll(/\{(\d)\}/g)].map((found) => found[1]).sort().join();
  for (const [english, chinese] of REASONS) assert.equal(numbers(chinese), numbers(english), english);
});

test("fields stay, and several are told apart", () => {
  assert.equal(inChinese(TABLE, "username: is required"), "username：必填");
  assert.equal(inChinese(TABLE, "username: is required; password: expected str of length >= 8"), "username：必填；password：至少应有 8 个字符");
  assert.equal(inChinese(TABLE, "code: was used already; ask for a new one"), "code：已使用过；请重新申请");
  assert.equal(inChinese(TABLE, "uid: no record 'pump-7'"), "uid：没有记录 'pump-7'");
  assert.equal(inChinese(TABLE, "rows[3].mode: expected one of pwd, auto, got 'x'"), "rows[3].mode：应为 pwd, auto 之一，实际为 'x'");
});

test("what nobody knows stays as it is, and nothing takes long", () => {
  assert.equal(inChinese(TABLE, "tea: too hot"), "tea: too hot");
  const long = "expected one of ".repeat(5_000);
  assert.equal(inChinese(TABLE, long), long);
  assert.equal(typeof inChinese(TABLE, "; a: b".repeat(300)), "string");
  assert.equal(valuesOf({ parts: ["a ", " b"], chinese: "" }, "a b"), null);
});
