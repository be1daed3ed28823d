import assert from "node:assert/strict";
import { test } from "node:test";
import { KEPT_REASONS, keptReason, sentReason } from "../words/kept-reasons.ts";

test("what is kept is worded with what differs in it", () => {
  assert.equal(keptReason("refused by the terminal", "zh"), "终端拒绝");
  assert.equal(keptReason("recalled by anna $&", "zh"), "由 anna $& 撤回");
  assert.equal(keptReason("did not report version 2.1 within 600 s", "zh"), "未在 600 秒内上报版本 2.1");
  assert.equal(keptReason("3 of the 10 terminals that ended have failed", "zh"), "已结束的 10 台终端中有 3 台失败");
});

test("why a message was not sent is worded, for each recipient and within one another", () => {
  assert.equal(sentReason("given up after 3 attempts: no answer within 10 s", "zh"), "尝试 3 次后放弃：10 秒内没有应答");
  assert.equal(sentReason("a@b.c: 535 login refused: bad; d@b.c: 550 no such user", "zh"), "a@b.c：535 登录被拒绝：bad；d@b.c：550 no such user");
  assert.equal(sentReason("given up after 2 attempts: a@b.c: not an e-mail: x", "zh"), "尝试 2 次后放弃：a@b.c：不是有效的邮件：x");
  assert.equal(sentReason("the provider answered 500, code 7", "zh"), "服务商返回 500，代码 7");
  for (const text of ["", "Connection refused", "a; b"]) assert.equal(sentReason(text, "en"), text);
  const deep = "given up after 1 attempts: ".repeat(8) + "x";
  assert.ok(sentReason(deep, "zh").endsWith("x"));
});

test("why a bridge is down is worded around what others say", () => {
  assert.equal(keptReason("no connection to h:1883: no answer in time", "zh"), "无法连接 h:1883：没有及时应答");
  assert.equal(keptReason("no connection to h:1883: [Errno 111] Connection refused", "zh"), "无法连接 h:1883：[Errno 111] Connection refused");
  assert.equal(keptReason("a message was not sent: refused with 0x87", "zh"), "有消息未发送：被拒绝，代码 0x87");
});

test("what people said stays, and English is what came", () => {
  for (const text of ["", "wrong batch", "constructor", "recalled by "]) assert.equal(keptReason(text, "zh"), text);
  for (const english of Object.keys(KEPT_REASONS)) assert.equal(keptReason(english, "en"), english);
});

test("places are the same in both", () => {
  const places = (text: string) => [...text.matchAll(/\{(\w+)\}/g)].map((found) => found[1]).sort();
  for (const [english, chinese] of Object.entries(KEPT_REASONS)) assert.deepEqual(places(chinese), places(english));
});
