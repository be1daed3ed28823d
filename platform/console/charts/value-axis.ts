/** Axes of values: which curve is on which, how far they reach, and how numbers are written. */

/** What is known of a variable beside its values. */
export interface Variable {
  key: string;
  name: string;
  unit: string;
  decimals: number | null;
  /** Has an axis of its own though its unit is that of others. */
  isAlone?: boolean;
}

const AXES_MAX = 4;
const LEAST_SHARE = 0.66; // of the step that makes as many as are asked for: a little closer reads better than two values on an axis

/** The axis of each variable: those of a unit share one. Units beyond the fourth share the last. */
export function axesOf(variables: readonly Variable[]): number[] {
  const shared = (each: Variable): string => (each.isAlone ? `alone ${each.key}` : `unit ${each.unit}`);
  const axes = [...new Set(variables.map(shared))];
  return variables.map((each) => Math.min(axes.indexOf(shared(each)), AXES_MAX - 1));
}

/** A range with some room around values from `low` to `high`; around one value a tenth of it, or one. */
export function roomy(low: number, high: number): [number, number] {
  if (low === high) {
    const room = Math.abs(low) * 0.1 || 1;
    return [low - room, high + room];
  }
  const room = (high - low) * 0.06;
  const bottom = low >= 0 && low - room < 0 ? 0 : low - room;
  return [bottom, high <= 0 && high + room > 0 ? 0 : high + room];
}

/** Round values of a range, about `count`, up to half more: steps of 1, 2 or 5 times a power of ten. */
export function roundValues(low: number, high: number, count: number): number[] {
  const rough = (high - low) / Math.max(1, count);
  if (!(rough > 0) || !Number.isFinite(rough)) return [];
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = ([1, 2, 5, 10].find((each) => each * power >= rough * LEAST_SHARE) ?? 10) * power;
  const found: number[] = [];
  for (let index = Math.ceil(low / step); index * step <= high + step * 1e-9; index += 1) found.push(Number((index * step).toPrecision(12)));
  return found;
}

/** A number with so many decimals, or as many as it needs of seven digits; what is very large or small with an exponent. */
export function numberText(value: number, decimals: number | null = null): string {
  if (!Number.isFinite(value)) return String(value);
  if (decimals !== null) return value.toFixed(Math.max(0, Math.min(20, decimals)));
  const size = Math.abs(value);
  if (size !== 0 && (size >= 1e9 || size < 1e-4)) return value.toExponential(3).replace(/\.?0+e/, "e");
  return String(Number(value.toPrecision(7)));
}
