/** The platform's clock and zone: ages are right though the browser's clock is not. */
import { computed, signal } from "@preact/signals";
import { formatTime, offsetName, parseTime } from "terrazzo-client";

const TICK_MS = 1_000;
const skew = signal(0);
const ticks = signal(Date.now());
const zone = signal("UTC");

setInterval(() => {
  if (!document.hidden) ticks.value = Date.now();
}, TICK_MS);
document.addEventListener("visibilitychange", () => (ticks.value = Date.now()));

export const clock = {
  zone,
  /** Milliseconds since 1970, once a second. */
  now: computed(() => ticks.value + skew.value),
  offset: computed(() => offsetName(ticks.value + skew.value, zone.value)),
  /** Takes the platform's clock over. */
  set(nowMs: number, name: string): void {
    skew.value = nowMs - Date.now();
    ticks.value = Date.now();
    zone.value = name;
  },
  /** Milliseconds since 1970 of a time as the platform writes it. */
  parse: (text: string): number => parseTime(text, zone.value),
  /** As the platform writes times. */
  format: (ms: number): string => formatTime(ms, zone.value),
  /** A time so long ago, as the platform takes it. */
  ago: (ms: number): string => formatTime(Date.now() + skew.value - ms, zone.value),
};
