import assert from "node:assert/strict";
import { getEventListeners } from "node:events";
import { test } from "node:test";
import { Client, Frames, GatewayError, isGap, Live, NotSent, openSocket } from "terrazzo-client";
import { credentials, freePort, relay, url } from "./platform.mjs";

assert.equal(typeof WebSocket === "undefined", process.env.TERRAZZO_SOCKET === "own");

const admin = new Client({ url, ...credentials });

/** Something that happens: a command for a terminal. */
const order = (value) => admin.call("publish_terminal_command", { terminal_id: "t1", command: "SP1", value });

/** Orders until the subscription is there to tell of it; the frame. */
async function first(frames) {
  let came;
  const waiting = frames.next().then((result) => (came = result));
  while (!came) {
    await order(0);
    await Promise.race([waiting, new Promise((resolve) => setTimeout(resolve, 100))]);
  }
  assert.equal(came.value.kind, "command");
  return came.value;
}

/** The values of the commands that frames tell of, each once, up to the last. */
async function valuesUntil(frames, last) {
  const found = [];
  while (found.at(-1) !== last) {
    const { value } = await frames.next();
    assert.ok(!isGap(value), JSON.stringify(value));
    if (!found.includes(Number(value.data.value))) found.push(Number(value.data.value));
  }
  return found;
}

test("frames go on after a lost connection: all, once, in order", async () => {
  const between = await relay();
  const states = [];
  const client = new Client({ url: between.url, ...credentials, onLiveState: (state) => states.push(state) });
  const frames = client.live(["command"], { terminal_id: "t1" });
  await first(frames);
  await order(1);
  await valuesUntil(frames, 1);
  between.cut();
  for (const value of [2, 3, 4]) await order(value);
  assert.deepEqual(await valuesUntil(frames, 4), [2, 3, 4]);
  assert.deepEqual(states.slice(0, 2), ["connecting", "open"]);
  assert.ok(states.includes("lost"));
  client.close();
  between.close();
});

test("a connection that stands, though nothing comes through it, is given up", async () => {
  const between = await relay();
  const client = new Client({ url: between.url, ...credentials, quietMs: 300 });
  const frames = client.live(["command"], { terminal_id: "t1" });
  await first(frames);
  await order(11);
  await valuesUntil(frames, 11);
  between.freeze();
  await order(12);
  assert.deepEqual(await valuesUntil(frames, 12), [12]);
  client.close();
  between.close();
});

test("another loop goes on where one stopped", async () => {
  const client = new Client({ url, ...credentials });
  const frames = client.live(["command"], { terminal_id: "t1" });
  await first(frames);
  const { since } = frames;
  await frames.return();
  await order(21);
  const seen = [];
  for await (const happened of client.live(["command"], { terminal_id: "t1", since })) {
    assert.ok(!isGap(happened));
    seen.push(Number(happened.data.value));
    if (seen.includes(21)) break;
  }
  client.close();
});

test("what can't be repeated is a gap", async () => {
  const client = new Client({ url, ...credentials });
  const { value } = await client.live(["command"], { since: 1 }).next();
  assert.ok(isGap(value));
  assert.deepEqual([value.since, value.reason], [1, "restart"]);
  client.close();
});

test("a token that ends is renewed, and nothing is missed", async () => {
  const client = new Client({ url, ...credentials });
  const frames = client.live(["command"], { terminal_id: "t1" });
  const other = client.live(["command"], { terminal_id: "t2" }); // both are refused, one logs in
  await first(frames);
  await new Client({ url, token: client.accessToken }).logout();
  await order(31);
  assert.ok((await valuesUntil(frames, 31)).includes(31));
  await order(32);
  assert.ok((await valuesUntil(frames, 32)).includes(32));
  await other.return();
  client.close();
});

test("who takes slowly misses nothing: the subscription rests meanwhile", async () => {
  const { token } = await admin.login();
  const live = new Live({ url: () => `${url.replace(/^http/, "ws")}/apiproxy/api`, token: () => token, open: openSocket });
  const source = { live, renew: () => Promise.reject(new Error("the token is good")) };
  const frames = new Frames(source, { kinds: ["command"], terminal_id: "t1" }, { mostWaiting: 3 });
  await first(frames);
  for (let value = 41; value <= 60; value++) await order(value);
  while (!frames.rests) await new Promise((resolve) => setTimeout(resolve, 10));
  const found = (await valuesUntil(frames, 60)).filter((value) => value >= 41);
  assert.deepEqual(found, Array.from({ length: 20 }, (_, place) => 41 + place));
  await frames.return();
  live.close();
});

test("what is refused is thrown", async () => {
  const client = new Client({ url, ...credentials });
  await assert.rejects(client.live(["nonsense"]).next(), (error) => error instanceof GatewayError && error.code === 10401 && /kinds/.test(error.info));
  await assert.rejects(client.live(["grid"], { terminal_id: "nobody" }).next(), /terminal_id/);
  client.close();
  const stranger = new Client({ url, token: "bad" });
  await assert.rejects(stranger.live(["grid"]).next(), (error) => error.code === 10402);
  stranger.close();
  const lost = new Client({ url: `http://127.0.0.1:${await freePort()}`, token: "x", retries: { most: 0 } });
  await assert.rejects(lost.live(["grid"]).next(), (error) => error instanceof NotSent);
  lost.close();
});

test("a token alone that ends is said", async () => {
  const { token } = await new Client({ url, ...credentials }).login();
  const client = new Client({ url, token });
  const frames = client.live(["command"], { terminal_id: "t1" });
  await first(frames);
  await new Client({ url, token }).logout();
  await assert.rejects(async () => {
    for (;;) await frames.next();
  }, (error) => error.code === 10402);
  client.close();
});

test("a loop ends where the client is closed, or the signal says so", async () => {
  const client = new Client({ url, ...credentials });
  const abort = new AbortController();
  const ends = [client.live(["attention"], { signal: abort.signal }).next(), client.live(["attention"]).next()];
  abort.abort();
  assert.deepEqual(await ends[0], { value: undefined, done: true });
  assert.deepEqual(await client.live(["attention"], { signal: abort.signal }).next(), { value: undefined, done: true });
  const another = new AbortController();
  for (let number = 0; number < 3; number++) await client.live(["attention"], { signal: another.signal }).return();
  assert.equal(getEventListeners(another.signal, "abort").length, 0); // what has ended leaves nothing on it
  client.close();
  assert.deepEqual(await ends[1], { value: undefined, done: true });
  assert.throws(() => client.live(["attention"]), /closed/);
});
