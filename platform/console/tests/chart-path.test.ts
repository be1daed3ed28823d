import assert from "node:assert/strict";
import { test } from "node:test";
import type { Curve } from "../charts/curve.ts";
import { drawPath, type PathLooks, type Plane } from "../charts/path.ts";

type Point = [x: number, y: number, isMove: boolean];

const PLANE: Plane = { from: 0, to: 800, low: 0, high: 100, left: 0, top: 0, width: 800, height: 100 };
const FINE: PathLooks = { isStepped: false, gapMs: Infinity, coarsePx: 0 };

function drawn(curve: Curve, looks: Partial<PathLooks> = {}, plane: Plane = PLANE): Point[] {
  const found: Point[] = [];
  const pen = { moveTo: (x: number, y: number) => found.push([x, y, true]), lineTo: (x: number, y: number) => found.push([x, y, false]) };
  drawPath(curve, plane, { ...FINE, ...looks }, pen);
  return found;
}

/** Points so far apart, with values that go up and down by chance. */
function noise(count: number, stepMs: number): Curve {
  let state = 7;
  const times = Array.from({ length: count }, (_, index) => index * stepMs);
  return { times, values: times.map(() => ((state = (state * 16807) % 2147483647) % 10_000) / 100) };
}

/** Lowest and highest place of each so many pixels. */
function reach(points: readonly Point[], px: number): Map<number, [number, number]> {
  const found = new Map<number, [number, number]>();
  for (const [x, y] of points) {
    const [low, high] = found.get(Math.round(x / px)) ?? [y, y];
    found.set(Math.round(x / px), [Math.min(low, y), Math.max(high, y)]);
  }
  return found;
}

test("points that have a column each are all drawn, each once", () => {
  assert.deepEqual(drawn({ times: [0, 10, 20], values: [0, 50, 100] }), [
    [0, 100, true],
    [0, 100.01, false],
    [10, 50, false],
    [20, 0, false],
  ]);
});

test("no more is drawn than there are points, where there are a few for each column", () => {
  assert.ok(drawn(noise(2_000, 0.4)).length <= 2_001);
});

test("of many points each column has four at most, among them its lowest and highest", () => {
  const curve = noise(80_000, 0.01);
  const found = drawn(curve);
  assert.ok(found.length <= 4 * 801);
  const all = curve.times.map((at, index): Point => [at, 100 - (curve.values[index] as number), false]);
  assert.deepEqual(reach(found, 1), reach(all, 1));
});

for (const columns of [2, 4]) {
  test(`a coarse line has two points for each ${columns} columns, where they are, and no extreme is lost`, () => {
    const curve = noise(2_000, 0.4);
    const found = drawn(curve, { coarsePx: columns });
    assert.ok(found.length <= 2 * (800 / columns + 1) + 2, `${found.length}`);
    const all = curve.times.map((at, index): Point => [at, 100 - (curve.values[index] as number), false]);
    assert.deepEqual(reach(found, columns), reach(all, columns));
    const places = new Set(all.map(([x, y]) => `${x} ${y}`));
    assert.ok(found.every(([x, y]) => places.has(`${x} ${y}`)));
    assert.deepEqual(found.at(-1)?.slice(0, 2), all.at(-1)?.slice(0, 2));
    assert.ok(found.every(([x], index) => index === 0 || x >= (found[index - 1] as Point)[0]));
  });
}

test("what is far apart is not joined, and a point alone is a dot", () => {
  const found = drawn({ times: [0, 10, 500, 510], values: [1, 1, 1, 1] }, { gapMs: 100 });
  assert.deepEqual(found.filter(([, , isMove]) => isMove).map(([x]) => x), [0, 500]);
  assert.equal(drawn({ times: [5], values: [1] }).length, 2);
});

test("steps go along before they go up, and are never coarse", () => {
  const found = drawn({ times: [0, 100, 200], values: [0, 100, 0] }, { isStepped: true, coarsePx: 2 });
  assert.deepEqual(found.slice(2), [
    [100, 100, false],
    [100, 0, false],
    [200, 0, false],
    [200, 100, false],
  ]);
});

test("only the view is drawn, with the points that lead into it and out of it", () => {
  const found = drawn(noise(100, 10), {}, { ...PLANE, from: 205, to: 295 });
  assert.equal(new Set(found.map(([x]) => x).filter((x) => x < 0)).size, 1);
  assert.ok(found.length <= 14);
});
