/** Times of the platform: `YYYY-MM-DD HH:MM:SS` in its zone, and back. */

const PARTS: Intl.DateTimeFormatOptions = {
  hourCycle: "h23",
  year: "numeric",
  month: "2-digit",
  day: "2-digit",
  hour: "2-digit",
  minute: "2-digit",
  second: "2-digit",
};
const formats = new Map<string, Intl.DateTimeFormat>();

function format(zone: string): Intl.DateTimeFormat {
  let found = formats.get(zone);
  if (!found) formats.set(zone, (found = new Intl.DateTimeFormat("en-CA", { ...PARTS, timeZone: zone })));
  return found;
}

function wallClock(ms: number, zone: string): number {
  const part: Record<string, number> = {};
  for (const { type, value } of format(zone).formatToParts(ms)) part[type] = Number(value);
  const { year = 0, month = 1, day = 1, hour = 0, minute = 0, second = 0 } = part;
  return Date.UTC(year, month - 1, day, hour, minute, second);
}

/** Milliseconds that a zone's clocks are ahead of UTC. */
export function zoneOffsetMs(ms: number, zone: string): number {
  return wallClock(ms, zone) - Math.floor(ms / 1000) * 1000;
}

/** Milliseconds since 1970 of a time as the platform writes it; NaN where it is none. An hour that comes twice is the first. */
export function parseTime(text: string, zone: string): number {
  const match = /^(\d{4})-(\d\d)-(\d\d)[ T](\d\d):(\d\d)(?::(\d\d)(\.\d+)?)?(Z|[+-]\d\d:?\d\d)?$/.exec(text);
  if (!match) return NaN;
  const [, year, month, day, hour, minute, second = "0", fraction = "", offset] = match;
  const wall = Date.UTC(Number(year), Number(month) - 1, Number(day), Number(hour), Number(minute), Number(second));
  const more = fraction ? Number(`0${fraction}`) * 1000 : 0;
  if (offset) return wall - offsetMs(offset) + more;
  const before = wall - zoneOffsetMs(wall - 86_400_000, zone);
  const first = wallClock(before, zone) === wall ? before : wall - zoneOffsetMs(before, zone);
  return first + more;
}

function offsetMs(offset: string): number {
  if (offset === "Z") return 0;
  const digits = offset.replace(":", "");
  const minutes = Number(digits.slice(1, 3)) * 60 + Number(digits.slice(3, 5));
  return (digits.startsWith("-") ? -1 : 1) * minutes * 60_000;
}

/** `YYYY-MM-DD HH:MM:SS` in a zone, as the platform writes it. */
export function formatTime(ms: number, zone: string): string {
  return new Date(wallClock(ms, zone)).toISOString().slice(0, 19).replace("T", " ");
}

/** `UTC+08:00`, `UTC`. */
export function offsetName(ms: number, zone: string): string {
  const minutes = Math.round(zoneOffsetMs(ms, zone) / 60_000);
  if (!minutes) return "UTC";
  const two = (n: number) => String(n).padStart(2, "0");
  const size = Math.abs(minutes);
  return `UTC${minutes < 0 ? "−" : "+"}${two(Math.floor(size / 60))}:${two(size % 60)}`;
}
