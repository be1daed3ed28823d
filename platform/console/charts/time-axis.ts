/** Where a time axis has its ticks and what they say, by the clocks of a zone. */
import { instantOf, offsetMs, wallOf } from "./zone.ts";

/** A tick; `context` is the larger unit (the day of an hour), where it begins or changes. */
export interface Tick {
  at: number;
  label: string;
  context: string;
}

type Unit = "ms" | "second" | "minute" | "hour" | "day" | "month" | "year";

interface Step {
  unit: Unit;
  count: number;
  ms: number; // about
}

const UNIT_MS: Record<Unit, number> = {
  ms: 1,
  second: 1000,
  minute: 60_000,
  hour: 3_600_000,
  day: 86_400_000,
  month: 30.44 * 86_400_000,
  year: 365.25 * 86_400_000,
};

const COUNTS: Record<Unit, number[]> = {
  ms: [1, 2, 5, 10, 20, 50, 100, 200, 500],
  second: [1, 2, 5, 10, 15, 30],
  minute: [1, 2, 5, 10, 15, 30],
  hour: [1, 2, 3, 6, 12],
  day: [1, 2, 7],
  month: [1, 3, 6],
  year: [1, 2, 5, 10, 20, 50, 100],
};

const STEPS: Step[] = (Object.keys(UNIT_MS) as Unit[]).flatMap((unit) =>
  COUNTS[unit].map((count) => ({ unit, count, ms: count * UNIT_MS[unit] })),
);
const LONGEST = STEPS[STEPS.length - 1] as Step;
const TICKS_MAX = 200;

/** Ticks of a range, at most about `count` of them; `language` names months. */
export function ticks(from: number, to: number, count: number, zone: string, language = "en"): Tick[] {
  if (!(to > from) || count < 1) return [];
  const step = STEPS.find((each) => (to - from) / each.ms <= count) ?? LONGEST;
  const found = instants(from, to, step, zone);
  let before = "";
  return found.map((at) => {
    const context = contextOf(at, step.unit, zone, language);
    const shown = context === before ? "" : context;
    before = context;
    return { at, label: labelOf(at, step.unit, zone, language), context: shown };
  });
}

function instants(from: number, to: number, step: Step, zone: string): number[] {
  switch (step.unit) {
    case "day":
    case "month":
    case "year":
      return calendar(from, to, step, zone);
    case "hour":
      return hours(from, to, step.count, zone);
    default:
      return even(from, to, step.ms, zone);
  }
}

function even(from: number, to: number, stepMs: number, zone: string): number[] {
  const offset = offsetMs(from, zone);
  const found: number[] = [];
  for (let at = Math.ceil((from + offset) / stepMs) * stepMs - offset; at <= to && found.length < TICKS_MAX; at += stepMs) found.push(at);
  return found;
}

/** Full hours of the wall's clock; one that it shows twice stands twice if each hour has a tick, else once. */
function hours(from: number, to: number, count: number, zone: string): number[] {
  const quarter = UNIT_MS.minute * 15;
  const found: number[] = [];
  let last = "";
  for (let at = Math.ceil(from / quarter) * quarter; at <= to && found.length < TICKS_MAX; at += quarter) {
    const wall = wallOf(at, zone);
    if (wall.minute !== 0 || wall.hour % count !== 0) continue;
    const name = `${wall.day} ${wall.hour}`;
    if (count === 1 || name !== last) found.push(at);
    last = name;
  }
  return found;
}

function calendar(from: number, to: number, step: Step, zone: string): number[] {
  const { unit, count } = step;
  const wall = wallOf(from, zone);
  let day = unit === "day" ? wall.day : 1;
  let month = unit === "year" ? 1 : wall.month;
  let year = wall.year;
  if (unit === "day" && count > 1) day -= daysSince(year, month, day, count);
  if (unit === "month") month -= (month - 1) % count;
  if (unit === "year") year -= year % count;
  const found: number[] = [];
  while (found.length < TICKS_MAX) {
    const at = instantOf({ year, month, day }, zone);
    if (at > to) break;
    if (at >= from) found.push(at);
    if (unit === "day") day += count;
    else if (unit === "month") month += count;
    else year += count;
  }
  return found;
}

/** Days since the last tick: weeks begin on Mondays, pairs of days on even days since 1970. */
function daysSince(year: number, month: number, day: number, count: number): number {
  const number = Math.floor(Date.UTC(year, month - 1, day) / UNIT_MS.day);
  return count === 7 ? (number + 3) % 7 : number % count; // 1970-01-01 was a Thursday
}

const two = (value: number): string => String(value).padStart(2, "0");

function labelOf(at: number, unit: Unit, zone: string, language: string): string {
  const wall = wallOf(at, zone);
  switch (unit) {
    case "ms":
      return `${two(wall.second)}.${String(wall.ms).padStart(3, "0")}`;
    case "second":
      return `${two(wall.hour)}:${two(wall.minute)}:${two(wall.second)}`;
    case "minute":
    case "hour":
      return `${two(wall.hour)}:${two(wall.minute)}`;
    case "day":
      return named(at, zone, language, { day: "numeric", month: "short" });
    case "month":
      return named(at, zone, language, { month: "short" });
    case "year":
      return String(wall.year);
  }
}

function contextOf(at: number, unit: Unit, zone: string, language: string): string {
  switch (unit) {
    case "ms":
      return named(at, zone, language, { day: "numeric", month: "short", hour: "2-digit", minute: "2-digit", hourCycle: "h23" });
    case "second":
    case "minute":
    case "hour":
      return named(at, zone, language, { day: "numeric", month: "short" });
    case "day":
    case "month":
      return String(wallOf(at, zone).year);
    case "year":
      return "";
  }
}

const formats = new Map<string, Intl.DateTimeFormat>();

function named(at: number, zone: string, language: string, options: Intl.DateTimeFormatOptions): string {
  const key = `${zone} ${language} ${Object.keys(options).join()}`;
  let format = formats.get(key);
  if (!format) formats.set(key, (format = new Intl.DateTimeFormat(language, { ...options, timeZone: zone })));
  return format.format(at);
}
