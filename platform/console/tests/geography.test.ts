import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { fit, markersOf, moved, parseGis, project, readView, ringsOf, scaleBar, tilesOf, writeView, zoomed } from "../objects/geography.ts";

test("gis is latitude, then longitude", () => {
  assert.deepEqual(parseGis("31.2990,120.5853"), { latitude: 31.299, longitude: 120.5853 });
  assert.deepEqual(parseGis(" -33.86; 151.2 "), { latitude: -33.86, longitude: 151.2 });
  for (const wrong of ["", "120.5853,31.2990", "91,0", "0,181", "31.2990", "a,b", "1,2,3", "1e1,2", "9".repeat(100_000)]) {
    assert.equal(parseGis(wrong), null, wrong.slice(0, 20));
  }
});

test("the world is a square", () => {
  assert.deepEqual(project({ latitude: 0, longitude: 0 }), [0.5, 0.5]);
  const [x, y] = project({ latitude: 85.0511, longitude: 180 });
  assert.equal(x, 1);
  assert.ok(y >= 0 && y < 0.001);
});

test("all that is to be seen fits", () => {
  const points = [project({ latitude: 31, longitude: 120 }), project({ latitude: 52, longitude: 13 })];
  const view = fit(points, 800, 400);
  for (const marker of markersOf(points.map((point) => ({ point, what: 1 })), view, 800, 400, 20)) {
    assert.ok(marker.x > 0 && marker.x < 800 && marker.y > 0 && marker.y < 400);
  }
});

test("an address keeps a view, and tells of none where it is wrong", () => {
  const view = { x: 0.83494722, y: 0.40912341, size: 131_072 };
  assert.deepEqual(readView(writeView(view)), view);
  assert.equal(readView("0.5,0.5,1")?.size, 256);
  for (const wrong of ["", "0.5,0.5", "2.0,0.5,300", "0.5,0.5,-3", "a,b,c", "0.5,0.5,1e9", "1".repeat(100_000)]) assert.equal(readView(wrong), null);
});

test("what is under the pointer stays there", () => {
  const view = { x: 0.4, y: 0.5, size: 1_000 };
  const closer = zoomed(view, 2, 100, -50);
  assert.ok(Math.abs(view.x + 100 / view.size - (closer.x + 100 / closer.size)) < 1e-12);
  assert.ok(Math.abs(view.y - 50 / view.size - (closer.y - 50 / closer.size)) < 1e-12);
  assert.equal(moved(view, 100, 0).x, 0.5);
});

test("a length in the picture is that of the ground", () => {
  const [x, y] = project({ latitude: 60, longitude: 0 });
  const { metres, pixels } = scaleBar({ x, y, size: 256 * 2 ** 10 }, 120);
  assert.equal(metres, 5_000);
  assert.ok(Math.abs(pixels - 5_000 / (40_075_016.7 / 2 / (256 * 2 ** 10))) < 0.01);
});

test("what is close together has one marker, and comes apart when one looks closer", () => {
  const placed = [0, 0.0001, 0.3].map((x, what) => ({ point: [0.5 + x, 0.5] as const, what }));
  const far = markersOf(placed, { x: 0.6, y: 0.5, size: 1_000 }, 800, 400, 24);
  assert.deepEqual(far.map((each) => each.members), [[0, 1], [2]]);
  const near = markersOf(placed, { x: 0.5, y: 0.5, size: 1_000_000 }, 800, 400, 24);
  assert.deepEqual(near.map((each) => each.members), [[0], [1]]);
});

test("the coast of the world is there", () => {
  const text = readFileSync("node_modules/world-atlas/land-110m.json", "utf8");
  const rings = ringsOf(JSON.parse(text));
  assert.ok(rings.length > 100);
  const within = (latitude: number, longitude: number) => {
    const [x, y] = project({ latitude, longitude });
    return rings.filter((ring) => isInside(ring.points, x, y)).length % 2 === 1;
  };
  assert.equal(within(48, 11), true); // Munich
  assert.equal(within(-25, 135), true); // Australia
  assert.equal(within(0, -30), false); // the Atlantic
});

function isInside(flat: Float64Array, x: number, y: number): boolean {
  let found = false;
  for (let i = 0, j = flat.length - 2; i < flat.length; j = i, i += 2) {
    const [xi = 0, yi = 0, xj = 0, yj = 0] = [flat[i], flat[i + 1], flat[j], flat[j + 1]];
    if (yi > y !== yj > y && x < ((xj - xi) * (y - yi)) / (yj - yi) + xi) found = !found;
  }
  return found;
}

test("a view asks for the pictures that it shows, and no others", () => {
  const address = "https://t.example/{z}/{x}/{y}.png";
  const whole = tilesOf(address, { x: 0.5, y: 0.5, size: 256 }, 256, 256);
  assert.deepEqual(whole, [{ address: "https://t.example/0/0/0.png", left: 0, top: 0, size: 256 }]);
  const corner = tilesOf(address, { x: 0, y: 0, size: 512 }, 300, 300);
  assert.deepEqual(corner, [{ address: "https://t.example/1/0/0.png", left: 150, top: 150, size: 256 }]);
  assert.equal(tilesOf(address, { x: 0.5, y: 0.5, size: 256 * 2 ** 25 }, 1_000, 800)[0]?.address.split("/")[3], "19");
  assert.ok(tilesOf(address, { x: 0.5, y: 0.5, size: 4_096 }, 9_000, 9_000).length <= 64);
});
