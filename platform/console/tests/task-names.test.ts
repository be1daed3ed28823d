import assert from "node:assert/strict";
import { test } from "node:test";
import { TASK_NAMES, taskInChinese } from "../words/task-names.ts";

test("a task is named with what differs, and the name that says more wins", () => {
  assert.equal(taskInChinese("backup"), "备份");
  assert.equal(taskInChinese("bridge plant b"), "桥接 plant b");
  assert.equal(taskInChinese("bridge plant b writer"), "桥接 plant b 写入");
  assert.equal(taskInChinese("broker accept mqtt 127.0.0.1:1883"), "消息代理接受连接 mqtt 127.0.0.1:1883");
  assert.equal(taskInChinese("http accept ::1:8443"), "http 接受连接 ::1:8443");
  assert.equal(taskInChinese("messenger alarms.2"), "消息发送 alarms.2");
  assert.equal(taskInChinese("store"), "时序存储");
});

test("what has no words says so", () => {
  for (const name of ["", "constructor", "a task of a newer platform"]) assert.equal(taskInChinese(name), null);
  for (const english of Object.keys(TASK_NAMES)) assert.notEqual(taskInChinese(english.replace(/\{\w+\}/g, "x")), null, english);
});
