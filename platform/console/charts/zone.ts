/**
 * Wall clocks of a time zone and instants: milliseconds since 1970, UTC. Days of 23 and 25 hours are as they are.
 */
import { formatTime, zoneOffsetMs } from "terrazzo-client";

/** What a clock on the wall shows; `month` is 1 to 12. */
export interface Wall {
  year: number;
  month: number;
  day: number;
  hour: number;
  minute: number;
  second: number;
  ms: number;
}

const QUARTER_MS = 15 * 60_000; // offsets change at quarters of an hour alone
const DAY_MS = 86_400_000;
const KNOWN_MAX = 8192;

const known = new Map<string, number>();

/** By how many milliseconds the zone's clocks are ahead of UTC at an instant. */
export function offsetMs(at: number, zone: string): number {
  const quarter = Math.floor(at / QUARTER_MS) * QUARTER_MS;
  const key = `${zone} ${quarter}`;
  let found = known.get(key);
  if (found === undefined) {
    found = zoneOffsetMs(quarter, zone);
    if (known.size >= KNOWN_MAX) known.clear();
    known.set(key, found);
  }
  return found;
}

/** What the zone's clocks show at an instant. */
export function wallOf(at: number, zone: string): Wall {
  const local = new Date(at + offsetMs(at, zone));
  return {
    year: local.getUTCFullYear(),
    month: local.getUTCMonth() + 1,
    day: local.getUTCDate(),
    hour: local.getUTCHours(),
    minute: local.getUTCMinutes(),
    second: local.getUTCSeconds(),
    ms: local.getUTCMilliseconds(),
  };
}

/**
 * The instant at which the zone's clocks show this. What they show twice is the instant nearest to `near`, else the
 * first; what they leave out is so much later as they are set forward.
 */
export function instantOf(wall: Partial<Wall> & { year: number }, zone: string, near?: number): number {
  const { year, month = 1, day = 1, hour = 0, minute = 0, second = 0, ms = 0 } = wall;
  const local = Date.UTC(year, month - 1, day, hour, minute, second, ms);
  const before = offsetMs(local - DAY_MS, zone);
  const after = offsetMs(local + DAY_MS, zone);
  const fitting = [before, after].filter((offset) => offsetMs(local - offset, zone) === offset);
  if (!fitting.length) return local - before;
  const instants = fitting.map((offset) => local - offset).sort((a, b) => a - b);
  const first = instants[0] as number;
  const last = instants[instants.length - 1] as number;
  return near !== undefined && Math.abs(last - near) < Math.abs(first - near) ? last : first;
}

/** `2026-11-23 09:08:07.250` as the zone's clocks show it. */
export function exactTime(at: number, zone: string): string {
  const ms = ((at % 1000) + 1000) % 1000;
  return `${formatTime(at, zone)}.${String(Math.floor(ms)).padStart(3, "0")}`;
}
