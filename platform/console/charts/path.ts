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
  const { from, to, low, left, width, height } = plane;
  const isCoarse = looks.coarsePx > 0 && !looks.isStepped;
  const columnPx = isCoarse ? looks.coarsePx : 1;
  const perMs = width / (to - from);
  const perUnit = height / (plane.high - low);
  const bottom = plane.top + height;
  const end = Math.min(times.length, countBefore(times, to) + 1);
  const xOf = (index: number): number => left + ((times[index] as number) - from) * perMs;
  const yOf = (index: number): number => bottom - ((values[index] as number) - low) * perUnit;
  let index = Math.max(0, countBefore(times, from) - 1);
  let before = -1; // the last point that is behind
  while (index < end) {
    const column = Math.round(xOf(index) / columnPx);
    const until = from + ((column + 0.5) * columnPx - left) / perMs;
    const first = index;
    let [lowest, highest] = [first, first];
    let least = values[first] as number;
    let most = least;
    while (++index < end && (times[index] as number) < until) {
      const value = values[index] as number;
      if (value < least) {
        least = value;
        lowest = index;
      } else if (value > most) {
        most = value;
        highest = index;
      }
    }
    const last = index - 1;
    const place = (point: number): number => (isCoarse ? xOf(point) : column);
    if (before < 0 || (times[first] as number) - (times[before] as number) > looks.gapMs) {
      pen.moveTo(place(first), yOf(first));
      if (first === last) pen.lineTo(place(first), yOf(first) + DOT_PX);
    } else {
      if (looks.isStepped) pen.lineTo(column, yOf(before));
      if (!isCoarse || first === last) pen.lineTo(place(first), yOf(first));
    }
    const [early, late] = lowest < highest ? [lowest, highest] : [highest, lowest];
    if (early > first || (isCoarse && first < last)) pen.lineTo(place(early), yOf(early));
    if (late > early) pen.lineTo(place(late), yOf(late));
    if (last > late && !(isCoarse && index < end)) pen.lineTo(place(last), yOf(last));
    before = last;
  }
}
