import assert from "node:assert/strict";
import { test } from "node:test";
import { breakInChinese } from "../words/breaks.ts";

test("what the broker says of a break is said in Chinese, and what others say stays", () => {
  assert.equal(breakInChinese("disconnected"), "终端主动断开");
  assert.equal(breakInChinese("disconnected by the server: administrative_action: moved: hall 2"), "被平台断开：管理操作：moved：hall 2");
  assert.equal(breakInChinese("[Errno 104] Connection reset by peer"), null);
  assert.equal(breakInChinese("toString"), null);
});
