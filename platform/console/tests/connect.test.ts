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

test("WebSockets are secure where all is, and nowhere else", () => {
  const to = { host: "h", port: 1883, uid: "p", username: "u", pin: "p", websocketPort: 8083 };
  const shown = (more: object) => snippets({ ...to, ...more }).map((each) => each.text).join();
  assert.match(shown({}), /ws:\/\/h:8083\/mqtt/);
  assert.match(shown({ websocketTlsPort: 8084, isTls: true }), /wss:\/\/h:8084\/mqtt/);
  assert.doesNotMatch(shown({ websocketTlsPort: 8084 }), /wss:|server-ca/); // nothing would say whose certificate it takes
  assert.match(shown({ websocketPort: null }), /mqtt:\/\/h:1883"/);
});

test("over TLS each snippet knows who has signed the platform's certificate", () => {
  const made = snippets({ host: "h", port: 8883, uid: "pump-7", username: "u", pin: "secret", websocketPort: null, isTls: true });
  for (const { name, text } of made) assert.match(text, /server-ca\.pem/, name);
  assert.match(made[0]?.text ?? "", /-p 8883 --cafile server-ca\.pem -i pump-7 -u u -P secret/);
  assert.match(made[2]?.text ?? "", /mqtts:\/\/h:8883"/);
});

test("a terminal with a certificate shows that, and no password", () => {
  const made = snippets({ host: "h", port: 8883, uid: "it's", username: "u", pin: "secret", websocketPort: 8083, websocketTlsPort: 8084, isTls: true, isCert: true });
  for (const { name, text } of made) {
    assert.match(text, /it.*s\.pem/, name);
    assert.doesNotMatch(text, /secret|username/, name);
  }
  assert.match(made[0]?.text ?? "", /--cert 'it'\\''s\.pem' --key 'it'\\''s\.key'/);
  assert.match(made[2]?.text ?? "", /mqtts:\/\/h:8883"/);
});
