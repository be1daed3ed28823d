import assert from "node:assert/strict";
import { test } from "node:test";
import { ticks } from "../charts/time-axis.ts";
import { wallOf } from "../charts/zone.ts";

const utc = (text: string): number => Date.parse(text);
const iso = (at: number): string => new Date(at).toISOString().slice(0, 16);

test("days begin at midnight of the zone, on days of 23 and 25 hours too", () => {
  const found = ticks(utc("2026-03-27T00:00:00Z"), utc("2026-04-01T00:00:00Z"), 8, "Europe/Berlin");
  assert.deepEqual(found.map((each) => iso(each.at)), [
    "2026-03-27T23:00", "2026-03-28T23:00", "2026-03-29T22:00", "2026-03-30T22:00", "2026-03-31T22:00",
  ]);
  assert.equal(found[0]?.label, "Mar 28");
});

test("an hour that clocks leave out has no tick, one that they show twice has two", () => {
  const spring = ticks(utc("2026-03-29T00:00:00Z"), utc("2026-03-29T03:00:00Z"), 6, "Europe/Berlin");
  assert.ok(!spring.some((each) => each.label === "02:00"));
  const hours = ticks(utc("2026-10-24T23:00:00Z"), utc("2026-10-25T03:00:00Z"), 6, "Europe/Berlin");
  assert.deepEqual(hours.map((each) => each.label), ["01:00", "02:00", "02:00", "03:00", "04:00"]);
});

test("ticks of hours stand at round hours of the wall's clock, in zones of half an hour too", () => {
  for (const zone of ["Asia/Kolkata", "Europe/Berlin", "Australia/Lord_Howe"]) {
    const found = ticks(utc("2026-04-03T05:00:00Z"), utc("2026-04-06T05:00:00Z"), 7, zone);
    assert.ok(found.length >= 5);
    for (const each of found) assert.equal(wallOf(each.at, zone).hour % 12, 0, zone);
  }
});

test("the day is told where it begins", () => {
  const found = ticks(utc("2026-11-22T20:00:00Z"), utc("2026-11-23T04:00:00Z"), 8, "UTC");
  assert.deepEqual(found.filter((each) => each.context).map((each) => each.context), ["Nov 22", "Nov 23"]);
});

test("there are never more ticks than asked for by much, from milliseconds to centuries, and they rise", () => {
  for (let span = 10; span < 3e12; span *= 3) {
    for (const count of [3, 8, 14]) {
      const found = ticks(utc("2026-10-25T00:13:00Z") - span / 2, utc("2026-10-25T00:13:00Z") + span / 2, count, "Europe/Berlin");
      assert.ok(found.length <= count + 3, `${span}: ${found.length} of ${count}`);
      assert.ok(found.every((each, index) => index === 0 || each.at > (found[index - 1]?.at ?? 0)), String(span));
    }
  }
});

test("months are named in the language", () => {
  const found = ticks(utc("2026-01-01T00:00:00Z"), utc("2026-12-31T00:00:00Z"), 14, "Asia/Shanghai", "zh");
  assert.equal(found[1]?.label, "3月");
});
