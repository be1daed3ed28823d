import assert from "node:assert/strict";
import { test } from "node:test";
import { link, readRoute } from "../shell/routes.ts";

test("a link is read as it was made, whatever names hold", () => {
  for (const name of ["demo-1", "a/b", "100 %", "<b>", "ü?#&=", "‮rtl", "😀"]) {
    const route = readRoute(link(["terminals", name], { tab: name, empty: "", none: undefined }));
    assert.deepEqual([route.page, route.path, [...route.query]], ["terminals", [name], [["tab", name]]], name);
  }
});

test("what is no route is the overview, or what can be read of it", () => {
  assert.equal(readRoute("").page, "overview");
  assert.equal(readRoute("#/").page, "overview");
  assert.deepEqual(readRoute("#/terminals/%E0%A4%A").path, ["%E0%A4%A"]);
});
