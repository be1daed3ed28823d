import assert from "node:assert/strict";
import { test } from "node:test";
import { formatTime, offsetName, parseTime, zoneOffsetMs } from "../src/times.ts";

const HOUR = 3_600_000;

test("times of the platform go there and back, in any zone", () => {
  for (const zone of ["UTC", "Asia/Shanghai", "Europe/Berlin", "America/St_Johns", "Asia/Kathmandu", "Pacific/Apia"]) {
    for (const text of ["2026-01-31 23:59:59", "2026-07-01 00:00:00", "2024-02-29 12:30:15"]) {
      assert.equal(formatTime(parseTime(text, zone), zone), text, `${zone} ${text}`);
    }
  }
});

test("summer time: the hour that comes twice is the first, the one that is left out is still a time", () => {
  const zone = "Europe/Berlin";
  const twice = parseTime("2026-10-25 02:30:00", zone);
  assert.equal(zoneOffsetMs(twice, zone), 2 * HOUR);
  assert.equal(formatTime(twice + HOUR, zone), "2026-10-25 02:30:00");
  assert.ok(Number.isFinite(parseTime("2026-03-29 02:30:00", zone)));
});

test("an offset of its own counts", () => {
  assert.equal(parseTime("2026-11-23T08:00:00Z", "Asia/Shanghai"), Date.UTC(2026, 10, 23, 8));
  assert.equal(parseTime("2026-11-23T08:00:00.250+08:00", "UTC"), Date.UTC(2026, 10, 23, 0) + 250);
  assert.ok(Number.isNaN(parseTime("yesterday", "UTC")));
});

test("offsets are named", () => {
  const now = Date.UTC(2026, 10, 23);
  assert.deepEqual(
    ["UTC", "Asia/Shanghai", "America/St_Johns"].map((zone) => offsetName(now, zone)),
    ["UTC", "UTC+08:00", "UTC−03:30"],
  );
});
