import assert from "node:assert/strict";
import { test } from "node:test";
import { bytesText } from "../terminals/bytes.ts";

test("bytes stand in lines of sixteen, with what is ASCII beside", () => {
  const bytes = Buffer.from([0x82, 0xa1, ..."Temperature: 21.5"].map((each) => (typeof each === "string" ? each.charCodeAt(0) : each)));
  assert.equal(
    bytesText(bytes.toString("base64")),
    "0000  82 a1 54 65 6d 70 65 72 61 74 75 72 65 3a 20 32  ..Temperature: 2\n0010  31 2e 35                                         1.5",
  );
});

test("nothing is nothing, and of much the beginning is shown", () => {
  assert.equal(bytesText(""), "");
  assert.ok(!bytesText(Buffer.alloc(512).toString("base64")).includes("…"));
  const text = bytesText(Buffer.alloc(100_000).toString("base64"));
  assert.equal(text.split("\n").length, 33);
  assert.ok(text.endsWith("…"));
});
