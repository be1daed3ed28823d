import assert from "node:assert/strict";
import { test } from "node:test";
import { allowedOf } from "../terminals/allowed.ts";

const of = (access: string, topic: string) => allowedOf({ uid: "p-1", access, topic });

test("a terminal that may all publishes on its channels and hears its commands and reports", () => {
  assert.deepEqual(of("all", "all"), {
    publish: ["g/p-1/r", "g/p-1/a", "g/p-1/v", "g/p-1/p", "g/p-1/i", "g/p-1/n"],
    subscribe: ["p2p/p-1", "g/p-1/#"],
  });
});

test("access leaves one side out", () => {
  assert.deepEqual(of("pub", "all").subscribe, []);
  assert.deepEqual(of("sub", "all").publish, []);
});

test("topic names channels and filters, either of which may be left out", () => {
  assert.deepEqual(of("all", "pub:r, a;sub:g/#"), { publish: ["g/p-1/r", "g/p-1/a"], subscribe: ["p2p/p-1", "g/#"] });
  assert.deepEqual(of("all", "pub:r"), { publish: ["g/p-1/r"], subscribe: ["p2p/p-1"] });
  assert.deepEqual(of("all", "sub:news"), { publish: [], subscribe: ["p2p/p-1", "news"] });
});
