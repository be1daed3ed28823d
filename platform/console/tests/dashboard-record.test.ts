import assert from "node:assert/strict";
import { test } from "node:test";
import { begin, change, goOn, redo, undo } from "../dashboards/history.ts";
import { freePlace, inReadingOrder, inside, isFree, overlap, rowsOf } from "../dashboards/layout.ts";
import { addPage, addWidget, changeWidget, objectOf, placeWidget, readPages, removeWidget, type Json } from "../dashboards/record.ts";

const SCRIPT: Json = {
  vendor: { keep: [1, { deep: true }] },
  "Dashboard-10": { name: "Ten", col: 24, row: 14, data: [] },
  "Dashboard-2": {
    name: "Two",
    col: 24,
    row: 14,
    screenWidth: 1920,
    future: "kept",
    webSocket: { url: "wss://elsewhere.example/", objectId: 7, projectId: "1", token: "kept" },
    data: [
      { type: "gag", name: "Power", theme: "dark", blink: { fast: 1 }, xys: { pos: [0, 0], len: [6, 4], z: 3 }, attribute: { values: [{ objectId: "9", code: "P" }], least: 0, odd: "kept" } },
      { type: "vlu", name: "TEMP", xys: { pos: [6, 0], len: [4, 2] } },
      "no widget",
      { type: "new-kind", name: "?", xys: { pos: [90, -1], len: [99, 0] }, attribute: { values: [{}, null, { code: "X" }] } },
    ],
  },
};

test("pages come in the order of their numbers, widgets with their places inside of the grid", () => {
  const pages = readPages(SCRIPT);
  assert.deepEqual(pages.map((each) => each.key), ["Dashboard-2", "Dashboard-10", "vendor"]);
  const widgets = pages[0]?.widgets ?? [];
  assert.deepEqual(widgets.map((each) => each.index), [0, 1, 3]);
  assert.deepEqual(widgets[0]?.values, [{ objectId: "9", code: "P" }]);
  assert.deepEqual(widgets[1]?.values, [{ objectId: "", code: "TEMP" }]);
  assert.deepEqual(widgets[2]?.values, [{ objectId: "", code: "X" }]);
  assert.deepEqual(widgets[2]?.place, { left: 0, top: 0, width: 24, height: 1 });
});

test("what is no script is an empty one, whatever it is", () => {
  for (const each of [null, undefined, [], "text", 7, { "Dashboard-1": null }, { "Dashboard-1": [] }]) assert.deepEqual(readPages(each), []);
  assert.deepEqual(readPages({ "Dashboard-1": { data: { a: 1 }, webSocket: 7, col: "x" } })[0]?.widgets, []);
});

test("editing changes what is edited, and nothing that it does not know", () => {
  const before = structuredClone(SCRIPT);
  let script = placeWidget(SCRIPT, "Dashboard-2", 0, { left: 3, top: 5, width: 8, height: 2 });
  script = changeWidget(script, "Dashboard-2", 0, { name: "Site power", attribute: { most: 500 } });
  const expected = structuredClone(SCRIPT) as { "Dashboard-2": { data: Json[] } } & Json;
  const widget = expected["Dashboard-2"].data[0] as Json;
  widget["name"] = "Site power";
  widget["xys"] = { pos: [3, 5], len: [8, 2], z: 3 };
  widget["attribute"] = { values: [{ objectId: "9", code: "P" }], least: 0, odd: "kept", most: 500 };
  assert.deepEqual(script, expected);
  assert.deepEqual(SCRIPT, before);
});

test("a widget comes and goes, and the others keep their places in the list", () => {
  const more = addWidget(SCRIPT, "Dashboard-2", "lin", "New", { left: 0, top: 8, width: 12, height: 4 });
  assert.equal(readPages(more)[0]?.widgets.at(-1)?.name, "New");
  assert.deepEqual(removeWidget(more, "Dashboard-2", 4), SCRIPT);
  const [script, key] = addPage(SCRIPT, "Eleven");
  assert.equal(key, "Dashboard-11");
  assert.equal(readPages(script).find((each) => each.key === key)?.name, "Eleven");
});

test("one dashboard serves many objects: what is the page's own object is the one that it is shown for", () => {
  const page = readPages(SCRIPT)[0];
  assert.ok(page);
  assert.equal(objectOf({ objectId: "", code: "T" }, page, ""), "7");
  assert.equal(objectOf({ objectId: "", code: "T" }, page, "12"), "12");
  assert.equal(objectOf({ objectId: "7", code: "T" }, page, "12"), "12");
  assert.equal(objectOf({ objectId: "9", code: "T" }, page, "12"), "9");
});

test("widgets stay on the grid, and none lies over another", () => {
  assert.deepEqual(inside({ left: 23, top: -2, width: 6.4, height: 0 }, 24), { left: 18, top: 0, width: 6, height: 1 });
  assert.ok(overlap({ left: 0, top: 0, width: 2, height: 2 }, { left: 1, top: 1, width: 2, height: 2 }));
  assert.ok(!overlap({ left: 0, top: 0, width: 2, height: 2 }, { left: 2, top: 0, width: 2, height: 2 }));
  const page = readPages({ "Dashboard-1": { col: 12, row: 4, data: [{ xys: { pos: [0, 0], len: [6, 2] } }, { xys: { pos: [6, 3], len: [6, 3] } }] } })[0];
  assert.ok(page);
  const place = freePlace(page, 6, 3);
  assert.deepEqual(place, { left: 6, top: 0, width: 6, height: 3 });
  assert.ok(isFree(page.widgets, -1, place));
  assert.deepEqual(freePlace(page, 12, 2), { left: 0, top: 6, width: 12, height: 2 });
  assert.equal(rowsOf(page), 6);
  assert.deepEqual(inReadingOrder([...page.widgets].reverse()).map((each) => each.index), [0, 1]);
});

test("what was done is taken back and done again, a hundred steps of it", () => {
  let history = begin(0);
  for (let step = 1; step <= 150; step += 1) history = change(history, step);
  for (let step = 0; step < 500; step += 1) history = undo(history);
  assert.equal(history.now, 50);
  history = redo(redo(history));
  assert.equal(history.now, 52);
  history = change(history, 99);
  assert.equal(redo(history).now, 99);
  assert.equal(change(history, 99), history);
});

test("what goes on letter by letter is one step", () => {
  const history = goOn(goOn(change(begin(""), "p"), "pu"), "pum");
  assert.deepEqual([history.now, undo(history).now, redo(undo(history)).now], ["pum", "", "pum"]);
});
