/** What a chart shows, as text in an address, so that a link keeps the whole view. */
import { SPAN_MAX, SPAN_MIN, type Range } from "./window.ts";

/** `live`: it follows the clock, `spanMs` wide; else `range`. */
export interface ChartView {
  keys: string[];
  live: boolean;
  spanMs: number;
  range: Range | null;
  hidden: string[];
  compare: boolean;
  table: boolean;
}

export const HOUR_MS = 3_600_000;
export const WEEK_MS = 7 * 24 * HOUR_MS;
const KEYS_MAX = 50;

export const FIRST_VIEW: ChartView = {
  keys: [],
  live: true,
  spanMs: 8 * HOUR_MS,
  range: null,
  hidden: [],
  compare: false,
  table: false,
};

/** The view as parameters; what is as at first is left out. */
export function writeView(view: ChartView): URLSearchParams {
  const found = new URLSearchParams();
  for (const key of view.keys) found.append("key", key);
  for (const key of view.hidden) found.append("hide", key);
  if (view.live || !view.range) found.set("span", String(Math.round(view.spanMs)));
  else {
    found.set("from", new Date(view.range.from).toISOString());
    found.set("to", new Date(view.range.to).toISOString());
  }
  if (view.compare) found.set("compare", "week");
  if (view.table) found.set("as", "table");
  return found;
}

/** The view that parameters tell of; what they don't say, or say wrongly, is as at first. */
export function readView(parameters: URLSearchParams): ChartView {
  const [from, to] = [Date.parse(parameters.get("from") ?? ""), Date.parse(parameters.get("to") ?? "")];
  const isRange = to - from >= SPAN_MIN && to - from <= SPAN_MAX;
  const span = Number(parameters.get("span"));
  return {
    keys: unique(parameters.getAll("key")),
    live: !isRange,
    spanMs: isRange ? to - from : span >= SPAN_MIN && span <= SPAN_MAX ? span : FIRST_VIEW.spanMs,
    range: isRange ? { from, to } : null,
    hidden: unique(parameters.getAll("hide")),
    compare: parameters.get("compare") === "week",
    table: parameters.get("as") === "table",
  };
}

const unique = (texts: string[]): string[] => [...new Set(texts)].slice(0, KEYS_MAX);
