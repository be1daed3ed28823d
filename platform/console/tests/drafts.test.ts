import assert from "node:assert/strict";
import { test } from "node:test";
import { hasSecrets, isSecret, withoutSecrets } from "../parts/secrets.ts";
import { DraftStore, KEPT_MS, MOST_DRAFTS, MOST_OF_ALL, MOST_OF_ONE } from "../shell/draft-store.ts";

/** A tab's storage that has so much room. */
function storage(room = Infinity): Storage {
  const kept = new Map<string, string>();
  const used = (): number => [...kept].reduce((sum, [key, text]) => sum + key.length + text.length, 0);
  return {
    get length() {
      return kept.size;
    },
    key: (i) => [...kept.keys()][i] ?? null,
    getItem: (key) => kept.get(key) ?? null,
    removeItem: (key) => void kept.delete(key),
    clear: () => kept.clear(),
    setItem: (key, text) => {
      if (used() + key.length + text.length > room) throw new Error("QuotaExceededError");
      kept.set(key, text);
    },
  };
}

const ANN = 1;
const BEN = 12; // whose number begins as Ann's does

test("a draft is its user's own", () => {
  const tab = storage();
  const store = new DraftStore(tab, () => 1_000);
  assert.equal(store.keep(ANN, "handover", "by Ann"), true);
  assert.equal(store.read(ANN, "handover"), "by Ann");
  assert.equal(store.read(BEN, "handover"), undefined);
  store.keep(BEN, "handover", "by Ben");
  store.sweep(ANN);
  assert.equal(store.read(ANN, "handover"), "by Ann");
  assert.equal(tab.length, 1);
  store.sweep(BEN);
  assert.equal(tab.length, 0);
});

test("what is old is gone, and what others keep in the tab stays", () => {
  const tab = storage();
  let now = 1_000_000;
  const store = new DraftStore(tab, () => now);
  tab.setItem("other", "1 of somebody else");
  tab.setItem("terrazzo-draft-old", "without a time or a user");
  store.keep(ANN, "note", { text: "x" });
  now += KEPT_MS - 1;
  assert.deepEqual(store.read(ANN, "note"), { text: "x" });
  now += 1;
  assert.equal(store.read(ANN, "note"), undefined);
  store.sweep(ANN);
  assert.deepEqual([tab.length, tab.key(0)], [1, "other"]);
});

test("what is too long is not kept, nor what was there before", () => {
  const store = new DraftStore(storage(), () => 1);
  store.keep(ANN, "rows", "short");
  assert.equal(store.keep(ANN, "rows", "x".repeat(MOST_OF_ONE)), false);
  assert.equal(store.read(ANN, "rows"), undefined);
});

test("the oldest make room", () => {
  const tab = storage();
  let now = 0;
  const store = new DraftStore(tab, () => ++now);
  for (let i = 0; i <= MOST_DRAFTS; i++) store.keep(ANN, `note ${i}`, i);
  assert.equal(tab.length, MOST_DRAFTS);
  assert.equal(store.read(ANN, "note 0"), undefined);
  assert.equal(store.read(ANN, "note 1"), 1);
  const long = "x".repeat(MOST_OF_ONE - 100);
  const names = Array.from({ length: 5 }, (_, i) => `long ${i}`);
  for (const name of names) store.keep(ANN, name, long);
  const all = Array.from({ length: tab.length }, (_, i) => tab.getItem(tab.key(i) ?? "")?.length ?? 0).reduce((sum, each) => sum + each, 0);
  assert.ok(all <= MOST_OF_ALL);
  assert.deepEqual(names.map((name) => store.read(ANN, name) === long), [false, false, true, true, true]);
});

test("a browser without room keeps nothing", () => {
  const store = new DraftStore(storage(40), () => 1);
  assert.equal(store.keep(ANN, "note", "x".repeat(100)), false);
  assert.equal(store.read(ANN, "note"), undefined);
});

test("secrets are not kept", () => {
  const secret = ["password", "pin", "secret", "api_key", "token", "client_secret"];
  assert.deepEqual(secret.filter((name) => !isSecret({ name })), []);
  assert.deepEqual(["keep_alive", "name", "mapping_id", "monkey", "keys_count"].filter((name) => isSecret({ name })), []);
  const fields = [{ name: "name" }, { name: "phrase", kind: "password" }, { name: "pin" }, { name: "url", kind: "url" }];
  const typed = { name: "Pump", phrase: "a", pin: "b", url: "https://user:word@host/", gone: "of a field that is not there" };
  assert.deepEqual(withoutSecrets(typed, fields), { name: "Pump" });
  assert.deepEqual(withoutSecrets({ url: "https://host/a" }, fields), { url: "https://host/a" });
  assert.equal(withoutSecrets({ pin: "b" }, fields), undefined);
});

test("rows with a column of secrets are known", () => {
  assert.equal(hasSecrets("uid,name,pin,access\np1,Pump,1234,rw"), true);
  assert.equal(hasSecrets("uid;name;password\n"), true);
  assert.equal(hasSecrets('[{"uid": "p1", "pin": "1234"}]'), true);
  assert.equal(hasSecrets('{"uid": "p1"}\n{"uid": "p2", "pin": "1"}'), true);
  assert.equal(hasSecrets("uid,name\npin,the name of a terminal"), false);
  assert.equal(hasSecrets(""), false);
});
