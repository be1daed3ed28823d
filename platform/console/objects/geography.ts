/** Places on a map: what `gis` says, Mercator, coastlines out of a topology, and which markers are one. */

export interface Place {
  /** Degrees north, WGS 84. */
  latitude: number;
  /** Degrees east. */
  longitude: number;
}

/** A point of the world as a square: 0 to 1 from the west and from the north. */
export type Point = readonly [x: number, y: number];

/** The middle of what is shown, and how many pixels the whole world would have. */
export interface MapView {
  x: number;
  y: number;
  size: number;
}

export const SIZE_LEAST = 256;
export const SIZE_MOST = 256 * 2 ** 20; // a metre is some pixels
const REGION = 256 * 2 ** 7; // a picture of 1,000 pixels is 1,200 km wide
const LATITUDE_MOST = 85.05; // where Mercator's square ends

/** `31.2990,120.5853`: latitude, longitude, in degrees; null for anything else. */
export function parseGis(text: string): Place | null {
  const match = /^\s*([-+]?\d{1,3}(?:\.\d{1,12})?)\s*[,; ]\s*([-+]?\d{1,3}(?:\.\d{1,12})?)\s*$/.exec(text);
  if (!match) return null;
  const [latitude, longitude] = [Number(match[1]), Number(match[2])];
  return Math.abs(latitude) <= 90 && Math.abs(longitude) <= 180 ? { latitude, longitude } : null;
}

/** Where a place is in the world's square. */
export function project({ latitude, longitude }: Place): Point {
  const bounded = Math.max(-LATITUDE_MOST, Math.min(LATITUDE_MOST, latitude));
  const sine = Math.sin((bounded * Math.PI) / 180);
  return [longitude / 360 + 0.5, 0.5 - Math.log((1 + sine) / (1 - sine)) / (4 * Math.PI)];
}

/** A view that has all points in it with some room around, no closer than `most`: what stands on one site still has a coast around. */
export function fit(points: readonly Point[], width: number, height: number, most = REGION): MapView {
  if (!points.length) return { x: 0.5, y: 0.45, size: Math.max(SIZE_LEAST, width) };
  const xs = points.map(([x]) => x);
  const ys = points.map(([, y]) => y);
  const [left, right, top, bottom] = [Math.min(...xs), Math.max(...xs), Math.min(...ys), Math.max(...ys)];
  const room = 0.7;
  const size = Math.min((width * room) / Math.max(right - left, 1e-9), (height * room) / Math.max(bottom - top, 1e-9));
  return { x: (left + right) / 2, y: (top + bottom) / 2, size: Math.max(SIZE_LEAST, Math.min(most, size)) };
}

/** The view after zooming by a factor, with the point under `(dx, dy)` from the middle staying where it is. */
export function zoomed(view: MapView, factor: number, dx = 0, dy = 0): MapView {
  const size = Math.max(SIZE_LEAST, Math.min(SIZE_MOST, view.size * factor));
  const change = 1 / view.size - 1 / size;
  return kept({ x: view.x + dx * change, y: view.y + dy * change, size });
}

/** The view moved by so many pixels. */
export function moved(view: MapView, dx: number, dy: number): MapView {
  return kept({ ...view, x: view.x + dx / view.size, y: view.y + dy / view.size });
}

function kept(view: MapView): MapView {
  return { ...view, x: Math.max(0, Math.min(1, view.x)), y: Math.max(0, Math.min(1, view.y)) };
}

/** A view as text in an address: its middle in the world's square, and pixels of the world. */
export function writeView({ x, y, size }: MapView): string {
  return [x.toFixed(8), y.toFixed(8), Math.round(size)].join(",");
}

/** The view that an address tells of; null where it tells of none. */
export function readView(text: string): MapView | null {
  const match = /^([01]\.\d{1,8}),([01]\.\d{1,8}),(\d{1,9})$/.exec(text);
  if (!match) return null;
  const size = Number(match[3]);
  return kept({ x: Number(match[1]), y: Number(match[2]), size: Math.max(SIZE_LEAST, Math.min(SIZE_MOST, size)) });
}

const EARTH_M = 40_075_016.7; // around the equator, WGS 84

/** A round length in metres and its pixels, about `wanted` long, in the middle of a view. */
export function scaleBar(view: MapView, wanted: number): { metres: number; pixels: number } {
  const latitude = Math.atan(Math.sinh(Math.PI * (1 - 2 * view.y)));
  const metresOfPixel = (EARTH_M * Math.cos(latitude)) / view.size;
  const power = 10 ** Math.floor(Math.log10(metresOfPixel * wanted));
  const metres = ([5, 2, 1].find((each) => each * power <= metresOfPixel * wanted) ?? 1) * power;
  return { metres, pixels: metres / metresOfPixel };
}

/** A square picture of a map: its address, and where it lies in the view, in pixels. */
export interface Tile {
  address: string;
  left: number;
  top: number;
  size: number;
}

const TILE_PX = 256;
const CLOSEST_TILES = 19;
const MOST_TILES = 64;

/** The pictures that a view of so many pixels needs, of the scale that is nearest to it. */
export function tilesOf(address: string, view: MapView, width: number, height: number): Tile[] {
  const z = Math.max(0, Math.min(CLOSEST_TILES, Math.round(Math.log2(view.size / TILE_PX))));
  const count = 2 ** z;
  const size = view.size / count;
  const [west, north] = [view.x * view.size - width / 2, view.y * view.size - height / 2];
  const tiles: Tile[] = [];
  for (let y = Math.max(0, Math.floor(north / size)); y < count && y * size < north + height; y += 1) {
    for (let x = Math.max(0, Math.floor(west / size)); x < count && x * size < west + width; x += 1) {
      const filled = address.replace("{z}", String(z)).replace("{x}", String(x)).replace("{y}", String(y));
      tiles.push({ address: filled, left: x * size - west, top: y * size - north, size });
    }
  }
  return tiles.slice(0, MOST_TILES);
}

/** A closed line of the coast, with the box around it. */
export interface Ring {
  points: Float64Array; // x, y, x, y, ... in the world's square
  box: readonly [left: number, top: number, right: number, bottom: number];
}

interface Topology {
  arcs: [number, number][][];
  transform: { scale: [number, number]; translate: [number, number] };
  objects: { land: { geometries: { arcs: number[][][] }[] } };
}

/** The rings of a TopoJSON document with the object `land`, as world-atlas has it. */
export function ringsOf(topology: Topology): Ring[] {
  const { scale, translate } = topology.transform;
  const arcs = topology.arcs.map((arc) => {
    let [x, y] = [0, 0];
    return arc.map(([dx, dy]) => {
      x += dx;
      y += dy;
      return project({ longitude: x * scale[0] + translate[0], latitude: y * scale[1] + translate[1] });
    });
  });
  const line = (index: number): Point[] => (index < 0 ? [...(arcs[~index] ?? [])].reverse() : (arcs[index] ?? []));
  return topology.objects.land.geometries.flatMap((each) => each.arcs.flat()).map((indexes) => ring(indexes.flatMap(line)));
}

function ring(points: readonly Point[]): Ring {
  const flat = new Float64Array(points.length * 2);
  let [left, top, right, bottom] = [1, 1, 0, 0];
  points.forEach(([x, y], i) => {
    flat[2 * i] = x;
    flat[2 * i + 1] = y;
    [left, top, right, bottom] = [Math.min(left, x), Math.min(top, y), Math.max(right, x), Math.max(bottom, y)];
  });
  return { points: flat, box: [left, top, right, bottom] };
}

/** What is so close together that it has one marker. */
export interface Marker<T> {
  /** Pixels from the left and from the top. */
  x: number;
  y: number;
  members: T[];
}

/** Markers of what lies in the picture; those within `apart` pixels of another's first become one. */
export function markersOf<T>(placed: readonly { point: Point; what: T }[], view: MapView, width: number, height: number, apart: number): Marker<T>[] {
  const cells = new Map<string, Marker<T>>();
  const found: Marker<T>[] = [];
  for (const { point, what } of placed) {
    const x = (point[0] - view.x) * view.size + width / 2;
    const y = (point[1] - view.y) * view.size + height / 2;
    if (x < -apart || y < -apart || x > width + apart || y > height + apart) continue;
    const [column, row] = [Math.floor(x / apart), Math.floor(y / apart)];
    const near = neighbours(column, row).map((key) => cells.get(key));
    const same = near.find((each) => each && Math.hypot(each.x - x, each.y - y) < apart);
    if (same) {
      same.members.push(what);
      continue;
    }
    const marker = { x, y, members: [what] };
    cells.set(`${column} ${row}`, marker);
    found.push(marker);
  }
  return found;
}

function neighbours(column: number, row: number): string[] {
  return [-1, 0, 1].flatMap((dy) => [-1, 0, 1].map((dx) => `${column + dx} ${row + dy}`));
}
