import assert from "node:assert/strict";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { test } from "node:test";
import { Gateway, GatewayError, type ImportStep } from "../src/gateway.ts";
import { sendTold } from "../src/sending.ts";

type Answer = (body: string, write: (text: string) => void, end: (text: string) => void) => void;

async function served<T>(answer: Answer, act: (base: string) => Promise<T>): Promise<T> {
  const server = createServer((request, response) => {
    let body = "";
    request.on("data", (piece: Buffer) => (body += piece.toString()));
    request.on("end", () => answer(body, (text) => response.write(text), (text) => response.end(text)));
  });
  await new Promise<void>((listening) => server.listen(0, "127.0.0.1", listening));
  try {
    return await act(`http://127.0.0.1:${(server.address() as AddressInfo).port}/`);
  } finally {
    server.closeAllConnections();
    server.close();
  }
}

const line = (stage: string, done: number): string => `${JSON.stringify({ progress: { stage, done, total: 2 } })}\n`;

test("an import tells its steps, and its report is the last line", async () => {
  const steps: ImportStep[] = [];
  const report = await served(
    (body, write, end) => {
      write(line("read", 0));
      setTimeout(() => {
        write(line("check", 2).slice(0, 9));
        setTimeout(() => end(`${line("check", 2).slice(9)}${JSON.stringify({ code: 200, result: { total: body.length } })}\n`), 20);
      }, 20);
    },
    (base) => new Gateway({ base }).importFile("terminals", new Blob(["uid\na"]), { onStep: (step) => steps.push(step) }),
  );
  assert.equal((report as { total: number }).total, 5);
  assert.deepEqual(steps[0], { stage: "send", done: 5, total: 5 });
  assert.deepEqual(steps.at(-1), { stage: "check", done: 2, total: 2 });
});

test("a refusal after progress has the report", async () => {
  const refused = served(
    (_body, write, end) => {
      write(line("check", 1));
      end(JSON.stringify({ code: 10401, info: "row 2", result: { failed: 1 } }));
    },
    (base) => new Gateway({ base }).importFile("terminals", new Blob(["uid"])),
  );
  await assert.rejects(refused, (error) => error instanceof GatewayError && (error.result as { failed: number }).failed === 1);
});

test("what is quiet for too long is given up, and whoever stops it is told so", async () => {
  const silent: Answer = () => undefined;
  const telling = { quietMs: 50 };
  await assert.rejects(served(silent, (base) => sendTold(base, {}, new Blob(["a"]), telling)), { name: "TimeoutError" });
  const stop = new AbortController();
  const stopped = served(silent, (base) => sendTold(base, {}, new Blob(["a"]), { quietMs: 60_000, signal: stop.signal, onSent: () => undefined }));
  setTimeout(() => stop.abort(), 30);
  await assert.rejects(stopped, { name: "AbortError" });
});
