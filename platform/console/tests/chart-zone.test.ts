import assert from "node:assert/strict";
import { test } from "node:test";
import { exactTime, instantOf, wallOf } from "../charts/zone.ts";

const utc = (text: string): number => Date.parse(text);

test("a wall clock and its instant are each other's, through every quarter of a year with two changes", () => {
  for (const zone of ["Europe/Berlin", "Asia/Shanghai", "America/St_Johns", "Australia/Lord_Howe", "UTC"]) {
    for (let at = utc("2026-01-01T00:00:00Z"); at < utc("2027-01-01T00:00:00Z"); at += 900_000 * 7) {
      assert.equal(instantOf(wallOf(at, zone), zone, at), at, `${zone} ${new Date(at).toISOString()}`);
    }
  }
});

test("what clocks show twice is the first instant, or the one nearest to another", () => {
  const wall = { year: 2026, month: 10, day: 25, hour: 2, minute: 30 };
  assert.equal(instantOf(wall, "Europe/Berlin"), utc("2026-10-25T00:30:00Z"));
  assert.equal(instantOf(wall, "Europe/Berlin", utc("2026-10-25T02:00:00Z")), utc("2026-10-25T01:30:00Z"));
});

test("what clocks leave out is later by what they are set forward", () => {
  assert.equal(instantOf({ year: 2026, month: 3, day: 29, hour: 2, minute: 30 }, "Europe/Berlin"), utc("2026-03-29T01:30:00Z"));
});

test("instants are told with the zone's clock", () => {
  assert.equal(exactTime(utc("2026-07-01T22:00:01.5Z"), "Europe/Berlin"), "2026-07-02 00:00:01.500");
});
