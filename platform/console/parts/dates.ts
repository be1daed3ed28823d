/** Days as people type them. */

/** The day of a text as `2026-03-01`, whatever stands between its parts (`2026/3/1`, `2026年3月1日`, `20260301`); null: it is none. */
export function readDay(text: string): string | null {
  const found = /^\s*(\d{4})\s*[-/.年]?\s*(\d{1,2})\s*[-/.月]?\s*(\d{1,2})\s*日?\s*$/.exec(text);
  if (!found) return null;
  const [year, month, day] = found.slice(1).map(Number) as [number, number, number];
  const at = new Date(Date.UTC(year, month - 1, day));
  const isDay = year > 0 && at.getUTCMonth() === month - 1 && at.getUTCDate() === day;
  return isDay ? `${String(year).padStart(4, "0")}-${String(month).padStart(2, "0")}-${String(day).padStart(2, "0")}` : null;
}
