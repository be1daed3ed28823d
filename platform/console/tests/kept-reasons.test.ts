import assert from "node:assert/strict";
import { test } from "node:test";
import { KEPT_REASONS, keptReason } from "../words/kept-reasons.ts";

test("what is kept is worded with what differs in it", () => {
  assert.equal(keptReason("refused by the terminal", "zh"), "终端拒绝");
  assert.equal(keptReason("recalled by anna $&", "zh"), "由 anna $& 撤回");
  assert.equal(keptReason("did not report version 2.1 within 600 s", "zh"), "未在 600 秒内上报版本 2.1");
  assert.equal(keptReason("3 of the 10 terminals that ended have failed", "zh"), "已结束的 10 台终端中有 3 台失败");
});

test("what people said stays, and English is what came", () => {
  for (const text of ["", "wrong batch", "constructor", "recalled by "]) assert.equal(keptReason(text, "zh"), text);
  for (const english of Object.keys(KEPT_REASONS)) assert.equal(keptReason(english, "en"), english);
});

test("places are the same in both", () => {
  const places = (text: string) => [...text.matchAll(/\{(\w+)\}/g)].map((found) => found[1]).sort();
  for (const [english, chinese] of Object.entries(KEPT_REASONS)) assert.deepEqual(places(chinese), places(english));
});
