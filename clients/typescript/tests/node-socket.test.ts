import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { createServer, type Socket as Connection } from "node:net";
import { test } from "node:test";
import { NodeSocket } from "../src/node-socket.ts";

interface Peer {
  socket: NodeSocket;
  connection: Connection;
  /** What the client has sent after the handshake. */
  sent: () => Buffer;
  end: () => void;
}

/** A socket that a server of our own has accepted, or has answered with something else. */
async function connected(answer = (key: string) => key): Promise<Peer> {
  let sent: Buffer = Buffer.alloc(0);
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as { port: number };
  const accepted = new Promise<Connection>((resolve) => server.once("connection", resolve));
  const socket = new NodeSocket(`ws://127.0.0.1:${port}/apiproxy/api`);
  const opened = new Promise<void>((resolve) => {
    socket.onopen = socket.onclose = () => resolve();
  });
  const connection = await accepted;
  connection.on("error", () => undefined);
  let head = "";
  await new Promise<void>((resolve) => {
    connection.on("data", (data) => {
      if (head.endsWith("\r\n\r\n")) sent = Buffer.concat([sent, data]);
      else if ((head += data.toString("latin1")).endsWith("\r\n\r\n")) resolve();
    });
  });
  const key = answer(/Sec-WebSocket-Key: (\S+)/i.exec(head)?.[1] ?? "");
  const accept = createHash("sha1").update(`${key}258EAFA5-E914-47DA-95CA-C5AB0DC85B11`).digest("base64");
  connection.write(`HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: ${accept}\r\n\r\n`);
  await opened;
  return {
    socket,
    connection,
    sent: () => sent,
    end: () => {
      connection.destroy();
      server.close();
    },
  };
}

const frame = (first: number, payload: Buffer): Buffer => {
  const { length } = payload;
  if (length < 126) return Buffer.concat([Buffer.from([first, length]), payload]);
  const size = Buffer.alloc(length < 65_536 ? 4 : 10);
  if (length < 65_536) size.writeUInt16BE(length, 2);
  else size.writeBigUInt64BE(BigInt(length), 2);
  size[0] = first;
  size[1] = length < 65_536 ? 126 : 127;
  return Buffer.concat([size, payload]);
};

/** The frames that a client has sent, without their masks. */
function unmasked(sent: Buffer): [number, Buffer][] {
  const found: [number, Buffer][] = [];
  for (let at = 0; at < sent.length; ) {
    const [first = 0, second = 0] = sent.subarray(at);
    assert.ok(second & 0x80, "a client masks (RFC 6455, 5.1)");
    const short = second & 0x7f;
    const length = short === 127 ? Number(sent.readBigUInt64BE(at + 2)) : short === 126 ? sent.readUInt16BE(at + 2) : short;
    const head = at + (short === 127 ? 10 : short === 126 ? 4 : 2);
    const mask = sent.subarray(head, head + 4);
    found.push([first, Buffer.from(sent.subarray(head + 4, head + 4 + length).map((byte, place) => byte ^ (mask[place & 3] ?? 0)))]);
    at = head + 4 + length;
  }
  return found;
}

async function until(what: () => boolean): Promise<void> {
  while (!what()) await new Promise((resolve) => setTimeout(resolve, 5));
}

test("messages come whole, however they are cut", async () => {
  const { socket, connection, end } = await connected();
  const came: string[] = [];
  socket.onmessage = ({ data }: { data: string }) => void came.push(data);
  const long = "ü".repeat(40_000);
  const words = Buffer.from("Grüße");
  const bytes = Buffer.concat([
    frame(0x81, Buffer.from("{}")),
    frame(0x01, words.subarray(0, 3)), // within a letter
    frame(0x89, Buffer.from("between")), // a ping within a message is allowed
    frame(0x80, words.subarray(3)),
    frame(0x81, Buffer.from("x".repeat(300))),
    frame(0x81, Buffer.from(long)),
    frame(0x81, Buffer.alloc(0)),
  ]);
  for (const byte of bytes.subarray(0, 40)) connection.write(Buffer.from([byte]));
  connection.write(bytes.subarray(40));
  await until(() => came.length === 5);
  assert.deepEqual(came, ["{}", "Grüße", "x".repeat(300), long, ""]);
  socket.close();
  end();
});

test("a ping is answered, what is sent arrives, and the end is said", async () => {
  const { socket, connection, sent, end } = await connected();
  connection.write(frame(0x89, Buffer.from("there?")));
  await until(() => sent().length > 0);
  const texts = ["kurz", "y".repeat(200), "z".repeat(70_000)];
  for (const text of texts) socket.send(text);
  let isClosed = false;
  socket.onclose = () => {
    isClosed = true;
  };
  socket.close();
  await until(() => isClosed);
  await until(() => unmasked(sent()).some(([first]) => first === 0x88));
  const all = unmasked(sent()).map(([first, payload]) => [first, payload.toString("latin1")]);
  assert.deepEqual(all, [[0x8a, "there?"], ...texts.map((text) => [0x81, text]), [0x88, "\x03\xe8"]]);
  socket.send("after the end");
  end();
});

const wrong: [string, Buffer, number][] = [
  ["a mask", Buffer.from([0x81, 0x81, 1, 2, 3, 4, 5]), 1002],
  ["an extension", frame(0xc1, Buffer.from("x")), 1002],
  ["an unknown kind", frame(0x83, Buffer.from("x")), 1002],
  ["a message within a message", Buffer.concat([frame(0x01, Buffer.from("a")), frame(0x81, Buffer.from("b"))]), 1002],
  ["the end of no message", frame(0x80, Buffer.from("a")), 1002],
  ["a ping in pieces", frame(0x09, Buffer.from("a")), 1002],
  ["a long ping", frame(0x89, Buffer.alloc(126)), 1002],
  ["no UTF-8", frame(0x81, Buffer.from([0xff])), 1007],
  ["more than is taken", Buffer.from([0x81, 127, 0, 0, 0, 1, 0, 0, 0, 0]), 1009],
];

for (const [name, bytes, code] of wrong) {
  test(`${name} ends the connection, and says ${code}`, async () => {
    const { socket, connection, sent, end } = await connected();
    let isClosed = false;
    socket.onclose = () => {
      isClosed = true;
    };
    socket.onmessage = () => assert.fail("a message came");
    connection.write(bytes);
    await until(() => isClosed);
    await until(() => unmasked(sent()).length > 0);
    assert.equal(unmasked(sent()).at(-1)?.[1].readUInt16BE(0), code);
    end();
  });
}

test("who does not know the handshake is no peer", async () => {
  const { socket, end } = await connected(() => "another key");
  assert.equal(socket.readyState, 3);
  end();
});

test("an empty first piece of a message is a piece", async () => {
  const { socket, connection, end } = await connected();
  const came: string[] = [];
  socket.onmessage = ({ data }: { data: string }) => void came.push(data);
  connection.write(Buffer.concat([frame(0x01, Buffer.alloc(0)), frame(0x80, Buffer.from("rest"))]));
  await until(() => came.length === 1);
  assert.deepEqual(came, ["rest"]);
  socket.close();
  end();
});
