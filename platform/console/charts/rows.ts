/** The values of curves as the rows of a table, and as a file of comma-separated values. */
import { csvCell } from "../parts/csv.ts";
import { countBefore, type Curve, valueAt } from "./curve.ts";
import { offsetName } from "terrazzo-client";
import { exactTime } from "./zone.ts";
import type { Range } from "./window.ts";

/** A time and the value of each curve then; null where one has none. */
export interface ValueRow {
  at: number;
  values: (number | null)[];
}

/**
 * The rows of a range, oldest first, a row for each time that any curve has; the newest `limit` of them. What did not
 * change in the range has its value where the range begins.
 */
export function valueRows(given: readonly Curve[], range: Range, limit: number): ValueRow[] {
  const curves = given.map((curve) => orHeld(curve, range));
  const times = new Set<number>();
  for (const curve of curves) for (const at of within(curve, range)) times.add(at);
  const kept = [...times].sort((a, b) => a - b).slice(-limit);
  const places = curves.map(() => 0);
  return kept.map((at) => ({
    at,
    values: curves.map((curve, each) => {
      let place = places[each] as number;
      while (place < curve.times.length && (curve.times[place] as number) < at) place += 1;
      places[each] = place;
      return curve.times[place] === at ? (curve.values[place] as number) : null;
    }),
  }));
}

function orHeld(curve: Curve, range: Range): Curve {
  if (within(curve, range).length) return curve;
  const value = valueAt(curve, range.from);
  return value === null ? curve : { times: [range.from], values: [value] };
}

function within(curve: Curve, range: Range): number[] {
  return curve.times.slice(countBefore(curve.times, range.from), countBefore(curve.times, range.to + 1));
}

/** A file of rows, as spreadsheets read it: UTF-8 with its mark, CRLF, times by the zone's clock and its offset [RFC 4180]. */
export function csvText(names: readonly string[], rows: readonly ValueRow[], zone: string): string {
  const lines = [["time", "offset", ...names].map(csvCell).join(",")];
  for (const row of rows) {
    const values = row.values.map((value) => (value === null ? "" : String(value)));
    lines.push([exactTime(row.at, zone), offsetCell(row.at, zone), ...values].join(","));
  }
  return `\ufeff${lines.join("\r\n")}\r\n`;
}

const offsetCell = (at: number, zone: string): string => offsetName(at, zone).slice(3).replace("−", "-") || "+00:00";
