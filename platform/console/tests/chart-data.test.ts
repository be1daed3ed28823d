import assert from "node:assert/strict";
import { test } from "node:test";
import { ChartData, type ChartSource } from "../charts/data.ts";
import type { Curve } from "../charts/curve.ts";
import type { Load } from "../charts/window.ts";

interface Ask {
  keys: string[];
  load: Load;
  signal: AbortSignal;
  answer: (curves: Record<string, Curve>) => void;
  refuse: (error: Error) => void;
}

function source(): { source: ChartSource; asked: Ask[] } {
  const asked: Ask[] = [];
  const load: ChartSource["load"] = (keys, wanted, signal) =>
    new Promise((answer, refuse) => asked.push({ keys, load: wanted, signal, answer, refuse }));
  return { source: { load }, asked };
}

function asked(all: Ask[], index: number): Ask {
  const found = all[index];
  assert.ok(found, `there was no load ${index}`);
  return found;
}

const VIEW = { from: 1000_000, to: 2000_000 };

test("what comes while a load is under way is not lost", async () => {
  const { source: from, asked: all } = source();
  const data = new ChartData(from, () => undefined);
  const shown = data.show(["T"], VIEW, 100, 2_000_000);
  data.add("T", 2_000_500, 7);
  asked(all, 0).answer({ T: { times: [1_500_000], values: [5] } });
  await shown;
  assert.deepEqual(data.curve("T"), { times: [1_500_000, 2_000_500], values: [5, 7] });
});

test("a newer load gives up the older one, whose answer counts no more", async () => {
  const { source: from, asked: all } = source();
  const data = new ChartData(from, () => undefined);
  const first = data.show(["T"], VIEW, 100, 9e9);
  const second = data.show(["T"], { from: 5e6, to: 6e6 }, 100, 9e9);
  assert.ok(asked(all, 0).signal.aborted);
  asked(all, 1).answer({ T: { times: [5_500_000], values: [2] } });
  asked(all, 0).answer({ T: { times: [1_500_000], values: [1] } });
  await Promise.all([first, second]);
  assert.deepEqual(data.curve("T").times, [5_500_000]);
});

test("the same view is asked for once, though it is shown again and again", async () => {
  const { source: from, asked: all } = source();
  const data = new ChartData(from, () => undefined);
  const shown = [1, 2, 3].map(() => data.show(["T"], VIEW, 100, 9e9));
  assert.equal(all.length, 1);
  asked(all, 0).answer({});
  await Promise.all(shown);
  await data.show(["T"], VIEW, 100, 9e9);
  assert.equal(all.length, 1);
  void data.show(["T", "U"], VIEW, 100, 9e9);
  assert.equal(all.length, 2);
});

test("a load that fails is told, and tried again when it is shown again", async () => {
  const { source: from, asked: all } = source();
  const told: unknown[] = [];
  const data = new ChartData(from, (error) => told.push(error));
  const shown = data.show(["T"], VIEW, 100, 9e9);
  asked(all, 0).refuse(new Error("away"));
  await shown;
  assert.match(String(told[0]), /away/);
  void data.show(["T"], VIEW, 100, 9e9);
  assert.equal(all.length, 2);
});

test("a curve that only grows stays bounded", async () => {
  const { source: from, asked: all } = source();
  const data = new ChartData(from, () => undefined);
  const shown = data.show(["T"], VIEW, 100, 2_000_000);
  asked(all, 0).answer({ T: { times: [], values: [] } });
  await shown;
  for (let at = 0; at < 50_000; at += 1) data.add("T", 2_000_000 + at * 100, at);
  assert.ok(data.curve("T").times.length <= 20_000);
  assert.equal(data.curve("T").values.at(-1), 49_999);
});
