import assert from "node:assert/strict";
import { test } from "node:test";
import { Client, GatewayError, NotSent, Unreachable } from "terrazzo-client";
import { credentials, freePort, stub, url } from "./platform.mjs";

const quick = { retries: { most: 2 } };
const ok = (result) => [200, { code: 200, result }];

test("actions are called by name, and the login is made by itself, once for all who ask", async () => {
  const client = new Client({ url, ...credentials });
  const [session, terminal, list] = await Promise.all([
    client.call("get_session", {}),
    client.call("get_terminal_item", { uid: "t1" }),
    client.page("get_terminal_list", { page_size: 2 }),
  ]);
  assert.equal(session.username, "admin");
  assert.equal(terminal.uid, "t1");
  assert.deepEqual([list.rows.length, list.total], [2, 5]);
  assert.ok(client.accessToken);
});

test("lists of any length are read page after page", async () => {
  const client = new Client({ url, ...credentials });
  const uids = [];
  for await (const terminal of client.pages("get_terminal_list", {}, 2)) uids.push(terminal.uid);
  assert.deepEqual(uids.sort(), ["t0", "t1", "t2", "t3", "t4"]);
});

test("a refusal has its code, and names the field", async () => {
  const client = new Client({ url, ...credentials });
  await assert.rejects(client.call("get_terminal_item", { uid: "nobody" }), (error) => error instanceof GatewayError && error.code === 10404);
  await assert.rejects(client.call("get_terminal_list", { page_size: 0 }), (error) => error.code === 10401 && /page_size/.test(error.info));
  await assert.rejects(new Client({ url, username: "admin", password: "wrong" }).call("get_session", {}), (error) => error.code === 10402);
  await assert.rejects(new Client({ url, token: "bad" }).call("get_session", {}), (error) => error.code === 10402);
});

test("a token that has ended is renewed; who has logged out stays so", async () => {
  const client = new Client({ url, ...credentials });
  await client.login();
  const old = client.accessToken;
  await new Client({ url, token: old }).logout();
  assert.equal((await client.call("get_session", {})).username, "admin");
  assert.notEqual(client.accessToken, old);
  await client.logout();
  await assert.rejects(client.call("get_session", {}), (error) => error.code === 10402);
});

test("an API key goes where a token goes", async () => {
  const admin = new Client({ url, ...credentials });
  const { key } = await admin.call("create_api_key", { name: "of the client", role: "viewer" });
  const client = new Client({ url, token: key });
  assert.equal((await client.call("get_terminal_item", { uid: "t0" })).uid, "t0");
  await assert.rejects(client.call("delete_terminal", { uid: "t0" }), (error) => error.code === 10403);
});

test("component paths are read with their query", async () => {
  const client = new Client({ url, ...credentials });
  const found = await client.path("object/api/v1/object/getList", { page_index: "1", page_size: "5" });
  assert.deepEqual([found.data, found.total_records], [[], 0]);
});

test("what reads is asked again after a lost connection, what changes is not", async () => {
  const one = await stub([null, ok({ uid: "x" })]);
  assert.deepEqual(await new Client({ url: one.url, token: "k" }).call("get_terminal_item", { uid: "x" }), { uid: "x" });
  assert.equal(one.asked.length, 2);
  one.close();
  const other = await stub([null, ok({})]);
  await assert.rejects(new Client({ url: other.url, token: "k" }).call("delete_terminal", { uid: "x" }), (error) => error instanceof Unreachable && !(error instanceof NotSent));
  assert.equal(other.asked.length, 1);
  other.close();
});

test("who is busy is asked again when it says so, and not later than patience allows", async () => {
  const busy = (seconds) => [429, { code: 429, info: "too much" }, { "Retry-After": seconds }];
  const there = await stub([busy("0"), busy("0"), ok({})]);
  await new Client({ url: there.url, token: "k" }).call("delete_terminal", { uid: "x" });
  assert.equal(there.asked.length, 3);
  there.close();
  const long = await stub([busy("60")]);
  await assert.rejects(new Client({ url: long.url, token: "k" }).call("get_session", {}), (error) => error.code === 429 && error.retryAfterS === 60);
  long.close();
  const often = await stub([busy("0"), busy("0"), busy("0"), busy("0")]);
  await assert.rejects(new Client({ url: often.url, token: "k", ...quick }).call("get_session", {}), (error) => error.code === 429);
  assert.equal(often.asked.length, 3);
  often.close();
});

test("where nobody is, nothing was sent; what is no platform is unreachable", async () => {
  const nobody = `http://127.0.0.1:${await freePort()}`;
  await assert.rejects(new Client({ url: nobody, token: "k", ...quick }).call("delete_terminal", { uid: "x" }), (error) => error instanceof NotSent);
  const other = await stub([[502, "a proxy's page"]]);
  await assert.rejects(new Client({ url: other.url, token: "k" }).call("delete_terminal", { uid: "x" }), (error) => error instanceof Unreachable && !(error instanceof NotSent));
  other.close();
  assert.throws(() => new Client({ url: "ftp://x" }), /expected http/);
});

test("a code is asked for where the user has a second factor", async () => {
  const refused = [200, { code: 10402, info: "code: is required", result: { second_factor: "code" } }];
  const there = await stub([refused, ok({ token: "t" }), ok({ id: 1 })]);
  const client = new Client({ url: there.url, username: "bo", password: "p", code: async () => "123456" });
  assert.deepEqual(await client.call("get_session", {}), { id: 1 });
  assert.deepEqual(there.asked.map(({ fields }) => fields.code), [undefined, "123456", undefined]);
  assert.equal(there.asked[2].headers.authorization, "Bearer t");
  there.close();
});

test("a call that is aborted ends, while it waits to be sent again too", async () => {
  const there = await stub([[503, { code: 503, info: "later" }, { "Retry-After": "9" }]]);
  const client = new Client({ url: there.url, token: "k" });
  const abort = new AbortController();
  const called = client.call("get_session", {}, abort.signal);
  while (!there.asked.length) await new Promise((resolve) => setTimeout(resolve, 5));
  abort.abort();
  await assert.rejects(called, { name: "AbortError" });
  there.close();
});
