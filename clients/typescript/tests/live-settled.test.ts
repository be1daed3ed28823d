import assert from "node:assert/strict";
import { test } from "node:test";
import { Live, type Socket } from "../src/live.ts";

/** A connection whose far side the test is. */
class Wire implements Socket {
  readyState = 0;
  onopen: ((event: never) => void) | null = null;
  onmessage: ((event: never) => void) | null = null;
  onclose: ((event: never) => void) | null = null;
  readonly sent: Record<string, unknown>[] = [];

  send(text: string): void {
    this.sent.push(JSON.parse(text) as Record<string, unknown>);
  }

  close(): void {
    this.readyState = 3;
  }

  open(): void {
    this.readyState = 1;
    this.onopen?.({} as never);
  }

  /** The platform has subscribed what was asked for last. */
  begin(number: number, seq: number): void {
    const asked = this.sent.findLast((each) => each["action"] === "subscribe");
    const answer = { resp: "subscribe", actionid: asked?.["actionid"], code: 200, result: { subscription: number, seq } };
    this.onmessage?.({ data: JSON.stringify(answer) } as never);
  }
}

function start(): { live: Live; wire: () => Wire } {
  const wires: Wire[] = [];
  const open = (): Wire => {
    const wire = new Wire();
    wires.push(wire);
    return wire;
  };
  const live = new Live({ url: () => "ws://platform", open, leastMs: 1, mostMs: 1 });
  const wire = (): Wire => {
    const found = wires.at(-1);
    assert.ok(found);
    return found;
  };
  return { live, wire };
}

const WANTED = { kinds: ["event" as const] };

/** Whether a promise is fulfilled by what has happened until now. */
async function isDone(promise: Promise<void>): Promise<boolean> {
  let done = false;
  void promise.then(() => (done = true));
  await new Promise((resume) => setImmediate(resume));
  return done;
}

test("who reads waits until what was subscribed in the same turn has begun", async () => {
  const { live, wire } = start();
  const gaps: number[] = [];
  const settled = live.settled(60_000); // asked for before the subscription, as by a part that is shown with it
  const stop = live.subscribe(WANTED, { onFrame: () => undefined, onGap: ({ seq }) => gaps.push(seq) });
  assert.equal(await isDone(settled), false);
  wire().open();
  assert.equal(await isDone(settled), false);
  wire().begin(1, 7);
  assert.equal(await isDone(settled), true);
  assert.deepEqual(gaps, []);
  assert.equal(await isDone(live.settled(60_000)), true);
  stop();
  live.close();
});

test("what begins after the wait was over says that something may be missing, once", async () => {
  const { live, wire } = start();
  const gaps: { seq: number; reason: string }[] = [];
  live.subscribe(WANTED, { onFrame: () => undefined, onGap: ({ seq, reason }) => gaps.push({ seq, reason }) });
  await live.settled(1);
  wire().open();
  wire().begin(1, 7);
  assert.deepEqual(gaps, [{ seq: 7, reason: "late" }]);
  assert.equal(await isDone(live.settled(60_000)), true);
  live.close();
});

test("nobody waits for a connection that is lost, nor for a subscription that has ended", async () => {
  const { live, wire } = start();
  const gaps: string[] = [];
  live.subscribe(WANTED, { onFrame: () => undefined, onGap: ({ reason }) => gaps.push(reason) });
  const settled = live.settled(60_000);
  await isDone(settled);
  wire().onclose?.({} as never);
  assert.equal(live.state, "lost");
  assert.equal(await isDone(settled), true);
  const stop = live.subscribe(WANTED, { onFrame: () => undefined, onGap: ({ reason }) => gaps.push(reason) });
  assert.equal(await isDone(live.settled(60_000)), true);
  stop();
  live.retry();
  wire().open();
  wire().begin(1, 9);
  assert.deepEqual(gaps, ["late"]);
  const other = live.subscribe(WANTED, { onFrame: () => undefined });
  const waiting = live.settled(60_000);
  other();
  assert.equal(await isDone(waiting), true);
  live.close();
});

test("a connection that is prepared is used by the subscription that follows, and begun anew it is there for the next", async () => {
  const { live, wire } = start();
  live.prepare();
  const prepared = wire();
  prepared.open();
  live.restart();
  assert.equal(live.state, "idle");
  live.prepare();
  assert.notEqual(wire(), prepared);
  live.subscribe(WANTED, { onFrame: () => undefined });
  wire().open();
  assert.equal(wire().sent.filter((each) => each["action"] === "subscribe").length, 1);
  live.close();
});
