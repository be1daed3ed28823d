import assert from "node:assert/strict";
import { test } from "node:test";
import { append, countBefore, extremes, forget, gapMs, held, indexAt, lead, thin, valueAt, type Curve } from "../charts/curve.ts";

function walk(count: number, seed: number): Curve {
  let state = seed;
  const random = (): number => (state = (state * 16807) % 2147483647) / 2147483647;
  const curve: Curve = { times: [], values: [] };
  for (let at = 0; at < count; at += 1) {
    curve.times.push(at * 1000);
    curve.values.push(Math.round(random() * 1e6) / 1000);
  }
  return curve;
}

test("thinning keeps each column's first, lowest, highest and last point", () => {
  const curve = walk(10_000, 7);
  const found = thin(curve, 0, 10_000_000, 50);
  assert.ok(found.times.length <= 51 * 4);
  for (let column = 0; column < 50; column += 1) {
    const [from, to] = [column * 200_000, column * 200_000 + 199_999];
    const part = (each: Curve): number[] => each.values.slice(countBefore(each.times, from), countBefore(each.times, to));
    assert.equal(Math.min(...part(found)), Math.min(...part(curve)));
    assert.equal(Math.max(...part(found)), Math.max(...part(curve)));
    assert.equal(part(found)[0], part(curve)[0]);
    assert.equal(part(found).at(-1), part(curve).at(-1));
  }
  assert.ok(found.times.every((at, index) => index === 0 || at > (found.times[index - 1] ?? 0)));
});

test("few points stay as they are, cut to the range", () => {
  const curve = walk(100, 3);
  assert.deepEqual(thin(curve, 10_000, 20_000, 100).times, [10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20].map((each) => each * 1000));
});

test("points come in any order, and the same time again is the newer value", () => {
  const curve: Curve = { times: [], values: [] };
  for (const [at, value] of [[3, 30], [1, 10], [2, 20], [3, 33], [9, 90]] as const) append(curve, at, value);
  assert.deepEqual(curve, { times: [1, 2, 3, 9], values: [10, 20, 33, 90] });
  forget(curve, 3);
  assert.deepEqual(curve.times, [2, 3, 9]);
});

test("what is at an instant is the point at or before it", () => {
  assert.equal(indexAt([10, 20, 30], 9), -1);
  assert.equal(indexAt([10, 20, 30], 20), 1);
  assert.equal(indexAt([10, 20, 30], 29), 1);
  assert.equal(indexAt([], 1), -1);
});

test("extremes know the points that lead into a range", () => {
  const curve: Curve = { times: [0, 10, 20, 30], values: [5, 1, 2, 9] };
  assert.deepEqual(extremes(curve, 15, 18), [1, 2]);
  assert.equal(extremes({ times: [], values: [] }, 0, 1), null);
});

test("a gap is what is much longer than usual", () => {
  const times = Array.from({ length: 100 }, (_, each) => each * 60_000 + (each > 50 ? 7_200_000 : 0));
  assert.equal(gapMs(times), 300_000);
  assert.equal(gapMs([0, 1, 2]), Infinity);
});

test("a value that does not change is held up to now, and through a range that it came before", () => {
  const none = { times: [], values: [] };
  assert.deepEqual(held(none, { value: 7, since: 10 }, 20, 30), { times: [20, 30], values: [7, 7], isHeld: true });
  assert.deepEqual(held({ times: [22], values: [5] }, { value: 5, since: 22 }, 20, 30), { times: [22, 30], values: [5, 5], isHeld: true });
});

test("a measurement from before a value was held ends that", () => {
  const late = held({ times: [], values: [] }, { value: 7, since: 10 }, 20, 30);
  append(late, 28, 8);
  assert.deepEqual([late.times, late.values], [[20, 27, 28], [7, 7, 8]]);
  const next = held({ times: [22], values: [5] }, { value: 5, since: 22 }, 20, 30);
  append(next, 40, 6);
  assert.deepEqual([next.times, next.values], [[22, 30, 40], [5, 5, 6]]);
});

test("what is not known to be the newest is not held", () => {
  const curve = { times: [22], values: [5] };
  assert.deepEqual(held(curve, { value: 6, since: 28 }, 20, 25), curve);
  assert.deepEqual(held(curve, null, 20, 30), curve);
  assert.deepEqual(held({ times: [], values: [] }, { value: 6, since: 28 }, 20, 25), { times: [], values: [] });
});

test("what a curve was before the range leads to its first point, and no further than is known", () => {
  const before = { time: 500, value: 7 };
  const curve: Curve = { times: [3000, 4000], values: [1, 2], before };
  assert.deepEqual(lead(curve, 1000, 9000), { from: 1000, to: 3000, value: 7 });
  assert.deepEqual(lead(curve, 0, 2000), { from: 500, to: 2000, value: 7 });
  assert.equal(lead(curve, 3000, 9000), null);
  assert.deepEqual(lead({ times: [], values: [], before }, 1000, 5000), { from: 1000, to: 5000, value: 7 });
  assert.equal(lead({ times: [3000], values: [1] }, 1000, 5000), null);
  assert.deepEqual([400, 500, 2999, 3000, Infinity].map((at) => valueAt(curve, at)), [null, 7, 7, 1, 2]);
  assert.equal(valueAt({ times: [], values: [], before }, Infinity), 7);
  assert.deepEqual(extremes(curve, 1000, 9000), [1, 7]);
  assert.deepEqual(extremes(curve, 3000, 9000), [1, 2]);
});

test("what is held to now keeps what was before, and points that are forgotten take it along", () => {
  const before = { time: 500, value: 7 };
  assert.deepEqual(held({ times: [3000], values: [1], before }, { value: 1, since: 3000 }, 1000, 5000), { times: [3000, 5000], values: [1, 1], isHeld: true, before });
  const curve: Curve = { times: [3000, 4000, 5000, 6000], values: [1, 2, 3, 4], before };
  forget(curve, 5500);
  assert.equal(curve.before, undefined);
});
