import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { test } from "node:test";
import { shellWord, snippets } from "../terminals/connect.ts";

test("a shell reads each word as it is, whatever it holds", () => {
  for (const text of ["demo-1", "it's", '"$(rm -rf /)"', "a b;c", "`x`", "ü\\n", "$HOME"]) {
    assert.equal(execFileSync("sh", ["-c", `printf %s ${shellWord(text)}`]).toString(), text);
  }
});

test("every snippet names the terminal and its topic", () => {
  const made = snippets({ host: "h", port: 1883, uid: "pump-7", username: "u", pin: "p", websocketPort: 8083 });
  assert.equal(made.length, 4);
  for (const each of made) assert.match(each.text, /g\/pump-7\/r/);
});

test("secure WebSockets come before plain ones", () => {
  const to = { host: "h", port: 1883, uid: "p", username: "u", pin: "p", websocketPort: 8083 };
  const shown = (more: object) => snippets({ ...to, ...more }).map((each) => each.text).join();
  assert.match(shown({}), /ws:\/\/h:8083\/mqtt/);
  assert.match(shown({ websocketTlsPort: 8084 }), /wss:\/\/h:8084\/mqtt/);
  assert.match(shown({ websocketPort: null }), /mqtt:\/\/h:1883"/);
});
