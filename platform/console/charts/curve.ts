/** Points of a curve: thinning that keeps extremes, cutting, appending, and what is next to an instant. */

/** Oldest first; `times` in milliseconds since 1970, UTC. */
export interface Curve {
  times: number[];
  values: number[];
  /** The last point is no measurement: the value before it still holds. */
  isHeld?: boolean;
  /** What it was before the range that was loaded, where it begins later. */
  before?: { time: number; value: number };
}

export const EMPTY: Curve = { times: [], values: [] };

/** How many of the times are before `at`. */
export function countBefore(times: readonly number[], at: number): number {
  let [low, high] = [0, times.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((times[middle] as number) < at) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** The index of the point at or before an instant; -1 where there is none. */
export function indexAt(times: readonly number[], at: number): number {
  const before = countBefore(times, at);
  return times[before] === at ? before : before - 1;
}

/**
 * Of each of `columns` equal parts of a range the first, lowest, highest and last point, in their order. What has no
 * more than four points for each column stays as it is.
 */
export function thin(curve: Curve, from: number, to: number, columns: number): Curve {
  const begin = countBefore(curve.times, from);
  const end = countBefore(curve.times, to + 1);
  if (end - begin <= columns * 4) return { times: curve.times.slice(begin, end), values: curve.values.slice(begin, end) };
  const times: number[] = [];
  const values: number[] = [];
  const width = (to - from) / columns;
  let index = begin;
  while (index < end) {
    const column = Math.floor(((curve.times[index] as number) - from) / width);
    const first = index;
    let lowest = index;
    let highest = index;
    while (index < end && Math.floor(((curve.times[index] as number) - from) / width) === column) {
      const value = curve.values[index] as number;
      if (value < (curve.values[lowest] as number)) lowest = index;
      if (value > (curve.values[highest] as number)) highest = index;
      index += 1;
    }
    const kept = [...new Set([first, lowest, highest, index - 1])].sort((a, b) => a - b);
    for (const each of kept) {
      times.push(curve.times[each] as number);
      values.push(curve.values[each] as number);
    }
  }
  return { times, values };
}

/** The curve with a point more; one that is not after the last stands where it belongs, or takes its place. */
export function append(curve: Curve, at: number, value: number): void {
  if (curve.isHeld) endHeld(curve, at);
  const { times, values } = curve;
  if (!times.length || at > (times[times.length - 1] as number)) {
    times.push(at);
    values.push(value);
    return;
  }
  const index = countBefore(times, at);
  if (times[index] === at) values[index] = value;
  else {
    times.splice(index, 0, at);
    values.splice(index, 0, value);
  }
}

/** A value, and since when (milliseconds) it is what it is. */
export interface Newest {
  value: number;
  since: number;
}

/** The curve with its newest value up to `to`, and from `from` on where that came before: what does not change is stored once. */
export function held(curve: Curve, newest: Newest | null, from: number, to: number): Curve {
  const last = curve.times.at(-1);
  if (!newest || newest.since > (last ?? from) || to <= (last ?? from)) return curve;
  const begin = last === undefined ? [from] : [];
  return { ...curve, times: [...curve.times, ...begin, to], values: [...curve.values, ...begin.map(() => newest.value), newest.value], isHeld: true };
}

/**
 * Where and as what a curve is drawn before its first point, within `from` and `to`: it was so before the range, and
 * nothing is known of it since. Null: nowhere.
 */
export function lead({ times, before }: Curve, from: number, to: number): { from: number; to: number; value: number } | null {
  if (!before) return null;
  const [begin, end] = [Math.max(from, before.time), Math.min(to, times[0] ?? Infinity)];
  return begin < end ? { from: begin, to: end, value: before.value } : null;
}

/** The value at or before an instant, what was before the range among them; null: none is known. */
export function valueAt({ times, values, before }: Curve, at: number): number | null {
  return values[indexAt(times, at)] ?? (before && at >= before.time ? before.value : null);
}

/** What is measured earlier than a value was held ends that there. */
function endHeld(curve: Curve, at: number): void {
  curve.isHeld = false;
  const last = curve.times.length - 1;
  if (at > (curve.times[last] as number)) return;
  if (last > 0 && at - 1 <= (curve.times[last - 1] as number)) {
    curve.times.pop();
    curve.values.pop();
  } else curve.times[last] = at - 1;
}

/** Takes away what is before an instant, except the point that leads to it. */
export function forget(curve: Curve, before: number): void {
  const count = countBefore(curve.times, before) - 1;
  if (count < 1) return;
  delete curve.before;
  curve.times.splice(0, count);
  curve.values.splice(0, count);
}

/** Lowest and highest value of a range, with what leads into it and out of it; null without any. */
export function extremes(curve: Curve, from: number, to: number): [number, number] | null {
  const begin = Math.max(0, countBefore(curve.times, from) - 1);
  const end = Math.min(curve.times.length, countBefore(curve.times, to) + 1);
  const before = lead(curve, from, to)?.value;
  let [low, high] = before === undefined ? [Infinity, -Infinity] : [before, before];
  for (let index = begin; index < end; index += 1) {
    const value = curve.values[index] as number;
    if (value < low) low = value;
    if (value > high) high = value;
  }
  return low <= high ? [low, high] : null;
}

/** Above which distance two points are not joined: well above what lies between most of them; Infinity for few. */
export function gapMs(times: readonly number[]): number {
  if (times.length < 8) return Infinity;
  const stride = Math.max(1, Math.floor(times.length / 500));
  const distances = new Float64Array(Math.ceil((times.length - 1) / stride)); // which sorts by itself, ten times as quickly
  for (let index = 1, n = 0; index < times.length; index += stride, n += 1) distances[n] = (times[index] as number) - (times[index - 1] as number);
  distances.sort();
  const usual = distances[Math.floor(distances.length * 0.9)] as number;
  return Math.max(usual * 5, 1000);
}
