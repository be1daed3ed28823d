import assert from "node:assert/strict";
import { test } from "node:test";
import { AQI_BANDS, arc, bandOf, onCircle, rangeFor, reached, shares, stretches, summary } from "../dashboards/figures.ts";

test("shares add up to a turn; what is negative or no number has none", () => {
  assert.deepEqual(shares([1, 1, 2]), [[0, 0.25], [0.25, 0.5], [0.5, 1]]);
  assert.deepEqual(shares([-1, NaN, 4]), [[0, 0], [0, 0], [0, 1]]);
  assert.deepEqual(shares([0, 0]), [[0, 0], [0, 0]]);
});

test("turns begin at the top and go clockwise", () => {
  const near = ([x, y]: [number, number]): string => `${x.toFixed(3)} ${y.toFixed(3)}`;
  assert.equal(near(onCircle(50, 50, 40, 0)), "50.000 10.000");
  assert.equal(near(onCircle(50, 50, 40, 0.25)), "90.000 50.000");
  assert.match(arc(50, 50, 40, 0, 0.75), /^M50.00,10.00 A40,40 0 1 1 10.00,50.00$/);
  assert.doesNotMatch(arc(50, 50, 40, 0, 1), / 50\.00,10\.00$/); // a full circle would be nothing
});

test("ranges have round ends, or those that were given", () => {
  assert.deepEqual(rangeFor([3, 47], null, null), [0, 50]);
  assert.deepEqual(rangeFor([3, 47], 10, 45), [10, 45]);
  assert.deepEqual(rangeFor([], null, null), [0, 1]);
  assert.equal(reached(75, 50, 100), 0.5);
  assert.equal(reached(175, 50, 100), 1);
  assert.equal(reached(1, 5, 5), 0);
});

test("an index has a band, the worst one above all", () => {
  assert.equal(bandOf(50, AQI_BANDS)?.meaning, 0);
  assert.equal(bandOf(51, AQI_BANDS)?.meaning, 1);
  assert.equal(bandOf(9999, AQI_BANDS)?.meaning, 5);
});

test("a mean counts how long a value lasted", () => {
  assert.deepEqual(summary([0, 10], [100, 0], 100), { least: 0, most: 100, mean: 10 });
  assert.equal(summary([], [], 5), null);
});

test("stretches end where the value changes", () => {
  assert.deepEqual(stretches([0, 5, 7, 9], [1, 1, 0, 1], 20), [
    { from: 0, to: 7, value: 1 }, { from: 7, to: 9, value: 0 }, { from: 9, to: 20, value: 1 },
  ]);
});
