/** What widgets draw, computed: arcs, shares, ranges, bands. Angles in turns, from the top, clockwise. */

/** A point on a circle around (cx, cy). */
export function onCircle(cx: number, cy: number, radius: number, turn: number): [number, number] {
  const angle = (turn - 0.25) * 2 * Math.PI;
  return [cx + radius * Math.cos(angle), cy + radius * Math.sin(angle)];
}

const round = (value: number): string => value.toFixed(2);

/** An arc as the `d` of a path. */
export function arc(cx: number, cy: number, radius: number, from: number, to: number): string {
  const end = Math.min(to, from + 0.9999);
  const [x1, y1] = onCircle(cx, cy, radius, from);
  const [x2, y2] = onCircle(cx, cy, radius, end);
  return `M${round(x1)},${round(y1)} A${radius},${radius} 0 ${end - from > 0.5 ? 1 : 0} 1 ${round(x2)},${round(y2)}`;
}

/** Where each of the values lies of a turn, as [from, to]; negative ones count as nothing. */
export function shares(values: readonly number[]): [number, number][] {
  const sizes = values.map((each) => (Number.isFinite(each) && each > 0 ? each : 0));
  const total = sizes.reduce((sum, each) => sum + each, 0);
  let at = 0;
  return sizes.map((each) => {
    const from = at;
    at += total ? each / total : 0;
    return [from, at];
  });
}

/** The share of a range that a value has reached, 0 to 1. */
export function reached(value: number, least: number, most: number): number {
  return most > least && Number.isFinite(value) ? Math.min(1, Math.max(0, (value - least) / (most - least))) : 0;
}

/** A range around values that has round ends and begins at nothing, where none was given. */
export function rangeFor(values: readonly number[], least: number | null, most: number | null): [number, number] {
  const known = values.filter(Number.isFinite);
  const low = least ?? Math.min(0, ...known);
  const high = most ?? Math.max(0, ...known);
  if (high > low) return [low, most ?? roundUp(high - low) + low];
  return [low, low + 1];
}

function roundUp(size: number): number {
  const power = 10 ** Math.floor(Math.log10(size));
  return ([1, 2, 5, 10].find((each) => each * power >= size) ?? 10) * power;
}

/** Bands of an index, each up to `to`; `meaning` is 0 (good) to 5. */
export interface Band {
  to: number;
  meaning: number;
}

/** Bands of the air quality index [US EPA, 40 CFR 58 appendix G]. */
export const AQI_BANDS: readonly Band[] = [50, 100, 150, 200, 300, 500].map((to, meaning) => ({ to, meaning }));

/** The band of a value; the last one above all. */
export function bandOf(value: number, bands: readonly Band[]): Band | undefined {
  return bands.find((each) => value <= each.to) ?? bands[bands.length - 1];
}

/** Lowest, highest and mean value; the mean by how long each value lasted, until `end`. */
export function summary(times: readonly number[], values: readonly number[], end: number): { least: number; most: number; mean: number } | null {
  if (!values.length) return null;
  let [least, most, sum, long] = [Infinity, -Infinity, 0, 0];
  values.forEach((value, index) => {
    const ms = Math.max(0, (times[index + 1] ?? end) - (times[index] as number));
    [least, most] = [Math.min(least, value), Math.max(most, value)];
    sum += value * ms;
    long += ms;
  });
  return { least, most, mean: long ? sum / long : (values[values.length - 1] as number) };
}

/** Times in which a value stayed what it was, each until the next change or `end`. */
export function stretches(times: readonly number[], values: readonly number[], end: number): { from: number; to: number; value: number }[] {
  const found: { from: number; to: number; value: number }[] = [];
  values.forEach((value, index) => {
    const last = found[found.length - 1];
    const at = times[index] as number;
    if (last?.value === value) return;
    if (last) last.to = at;
    found.push({ from: at, to: end, value });
  });
  return found;
}
