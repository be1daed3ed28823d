/** A curve as a path of pixels: where many points fall on a column of them, the few that a reader could tell from all. */
import { countBefore, type Curve } from "./curve.ts";

/** What a path is drawn with: a `Path2D`. */
export interface Pen {
  moveTo: (x: number, y: number) => void;
  lineTo: (x: number, y: number) => void;
}

/** A part of the plane: instants `from` to `to` and values `low` to `high` on pixels of the canvas. */
export interface Plane {
  from: number;
  to: number;
  low: number;
  high: number;
  left: number;
  top: number;
  width: number;
  height: number;
}

/** `isStepped`: a value lasts until the next; points further apart than `gapMs` are not joined; `coarsePx`: of each so many columns the lowest and highest alone; 0: no. */
export interface PathLooks {
  isStepped: boolean;
  gapMs: number;
  coarsePx: number;
}

const DOT_PX = 0.01; // a line of no length is not drawn

/**
 * Draws a curve: of each column of pixels its first, lowest, highest and last point, each once and in their order.
 *
 * Where it is coarse, of each few columns the lowest and highest where they are: no extreme is lost, and no point drawn
 * is elsewhere; a step would be, so that stepped lines are never coarse.
 */
export function drawPath({ times, values }: Curve, plane: Plane, looks: PathLooks, pen: Pen): void {
  const { from, to, left } = plane;
  const isCoarse = looks.coarsePx > 0 && !looks.isStepped;
  const columnPx = isCoarse ? looks.coarsePx : 1;
  const perMs = plane.width / (to - from);
  const perUnit = plane.height / (plane.high - plane.low);
  const ground = plane.top + plane.height + plane.low * perUnit; // where zero is
  const end = Math.min(times.length, countBefore(times, to) + 1);
  let index = Math.max(0, countBefore(times, from) - 1);
  let before = -1; // the last point that is behind
  // without functions, pairs or objects of its own: what a chart draws first is drawn before any of it is compiled
  while (index < end) {
    const first = index;
    const at = times[first] as number;
    const x = left + (at - from) * perMs;
    const column = Math.round(x / columnPx);
    const until = from + ((column + 0.5) * columnPx - left) / perMs;
    let lowest = first;
    let highest = first;
    const value = values[first] as number;
    let least = value;
    let most = value;
    while (++index < end && (times[index] as number) < until) {
      const other = values[index] as number;
      if (other < least) {
        least = other;
        lowest = index;
      } else if (other > most) {
        most = other;
        highest = index;
      }
    }
    const last = index - 1;
    const place = isCoarse ? x : column;
    const y = ground - value * perUnit;
    if (before < 0 || at - (times[before] as number) > looks.gapMs) {
      pen.moveTo(place, y);
      if (first === last) pen.lineTo(place, y + DOT_PX);
    } else {
      if (looks.isStepped) pen.lineTo(column, ground - (values[before] as number) * perUnit);
      if (!isCoarse || first === last) pen.lineTo(place, y);
    }
    before = last;
    if (first === last) continue;
    const isFalling = highest < lowest;
    const early = isFalling ? highest : lowest;
    const late = isFalling ? lowest : highest;
    const yEarly = ground - (isFalling ? most : least) * perUnit;
    const yLate = ground - (isFalling ? least : most) * perUnit;
    if (early > first || isCoarse) pen.lineTo(isCoarse ? left + ((times[early] as number) - from) * perMs : column, yEarly);
    if (late > early) pen.lineTo(isCoarse ? left + ((times[late] as number) - from) * perMs : column, yLate);
    if (last > late && !(isCoarse && index < end)) pen.lineTo(isCoarse ? left + ((times[last] as number) - from) * perMs : column, ground - (values[last] as number) * perUnit);
  }
}
