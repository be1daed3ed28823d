import assert from "node:assert/strict";
import { test } from "node:test";
import { FIRST_VIEW, readView, writeView, type ChartView } from "../charts/link.ts";
import { csvText, valueRows } from "../charts/rows.ts";
import { axesOf, numberText, roomy, roundValues } from "../charts/value-axis.ts";
import { loadedBy, pan, planLoad, zoom } from "../charts/window.ts";

const HOUR = 3_600_000;

test("a view loads three times its width, and pans within it without loading", () => {
  const view = { from: 100 * HOUR, to: 108 * HOUR };
  const load = planLoad(view, null, 800, 1000 * HOUR);
  assert.ok(load && load.from === 92 * HOUR && load.to === 116 * HOUR && load.points === 4800);
  const loaded = loadedBy(load);
  for (const hours of [-8, -3, 0, 5, 8]) assert.equal(planLoad(pan(view, hours * HOUR), loaded, 800, 1000 * HOUR), null);
  assert.ok(planLoad(pan(view, 9 * HOUR), loaded, 800, 1000 * HOUR));
});

test("zooming in loads finer data, zooming out what is missing", () => {
  const view = { from: 100 * HOUR, to: 108 * HOUR };
  const loaded = { from: 92 * HOUR, to: 116 * HOUR, stepMs: 18_000 };
  const closer = planLoad(zoom(view, 104 * HOUR, 0.2), loaded, 800, 1000 * HOUR);
  assert.ok(closer && loadedBy(closer).stepMs < loaded.stepMs / 4);
  assert.ok(planLoad(zoom(view, 104 * HOUR, 5), loaded, 800, 1000 * HOUR));
});

test("what is still to come is not missing", () => {
  const loaded = { from: 0, to: 10 * HOUR, stepMs: 1000 };
  assert.equal(planLoad({ from: 5 * HOUR, to: 12 * HOUR }, loaded, 800, 10 * HOUR), null);
});

test("zooming keeps the instant under the pointer where it is", () => {
  const found = zoom({ from: 0, to: 1_000_000 }, 250_000, 0.5);
  assert.deepEqual(found, { from: 125_000, to: 625_000 });
  assert.equal(zoom(found, 250_000, 1e-9).to - zoom(found, 250_000, 1e-9).from, 1000);
});

test("a link keeps the whole view", () => {
  const views: ChartView[] = [
    FIRST_VIEW,
    { ...FIRST_VIEW, keys: ["a&b=", "流量", "a b"], hidden: ["流量"], compare: true, table: true },
    { ...FIRST_VIEW, keys: ["T"], live: false, range: { from: 1_700_000_000_123, to: 1_700_003_600_123 }, spanMs: HOUR },
  ];
  for (const view of views) assert.deepEqual(readView(new URLSearchParams(writeView(view).toString())), view);
});

test("links that make no sense show the first view", () => {
  const links = ["span=-1", "span=1e99", "from=x&to=y", "from=2026-01-02T00:00:00Z&to=2026-01-01T00:00:00Z", "compare=7"];
  for (const text of links) assert.deepEqual(readView(new URLSearchParams(text)), FIRST_VIEW);
});

test("rows have each time once, the newest of too many, and nothing where a curve has none", () => {
  const curves = [{ times: [1, 2, 4], values: [10, 20, 40] }, { times: [2, 3], values: [200, 300] }];
  assert.deepEqual(valueRows(curves, { from: 1, to: 4 }, 3), [
    { at: 2, values: [20, 200] }, { at: 3, values: [null, 300] }, { at: 4, values: [40, null] },
  ]);
});

test("what did not change in a range has its value where the range begins", () => {
  const curves = [
    { times: [5, 6], values: [50, 60] },
    { times: [1], values: [10] },
    { times: [], values: [], before: { time: 2, value: 20 } },
    { times: [9], values: [90] },
  ];
  assert.deepEqual(valueRows(curves, { from: 4, to: 8 }, 9), [
    { at: 4, values: [null, 10, 20, null] }, { at: 5, values: [50, null, null, null] }, { at: 6, values: [60, null, null, null] },
  ]);
});

test("a file of values has quotes where they are needed, and calculates nothing", () => {
  const text = csvText(['=1+1', 'a"b,c'], [{ at: 0, values: [-1.5, null] }], "Europe/Berlin");
  assert.equal(text, `\ufefftime,offset,'=1+1,"a""b,c"\r\n1970-01-01 01:00:00.000,+01:00,-1.5,\r\n`);
});

test("a unit has one axis, and there are four at most", () => {
  const variables = ["°C", "bar", "°C", "V", "A", "W"].map((unit, each) => ({ key: `k${each}`, name: "", unit, decimals: null }));
  assert.deepEqual(axesOf(variables), [0, 1, 0, 2, 3, 3]);
});

test("a variable that is alone shares no axis", () => {
  const variables = ["a", "b", "c"].map((key) => ({ key, name: key, unit: "", decimals: null, isAlone: key !== "c" }));
  assert.deepEqual(axesOf(variables), [0, 1, 2]);
});

test("values on an axis are round", () => {
  assert.deepEqual(roundValues(0.1, 0.52, 5), [0.1, 0.2, 0.3, 0.4, 0.5]);
  assert.deepEqual(roundValues(-3, 12, 4), [0, 5, 10]);
  assert.deepEqual(roundValues(6.8, 17.9, 5.5), [8, 10, 12, 14, 16]);
  assert.deepEqual(roundValues(1, 1, 5), []);
  assert.deepEqual(roomy(5, 5), [4.5, 5.5]);
  assert.equal(roomy(0, 100)[0], 0);
});

test("numbers have their decimals, or as few as they need", () => {
  assert.equal(numberText(21.456, 1), "21.5");
  assert.equal(numberText(0.1 + 0.2), "0.3");
  assert.equal(numberText(-0.00001), "-1e-5");
  assert.equal(numberText(1.5e12), "1.5e+12");
  assert.equal(numberText(0), "0");
});
