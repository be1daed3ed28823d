/** A WebSocket for Node.js 20, as far as the live connection needs one: text both ways (RFC 6455). */
import { createHash, randomBytes } from "node:crypto";
import { type ClientRequest, type IncomingMessage, request as plainly } from "node:http";
import { request as securely } from "node:https";
import type { Duplex } from "node:stream";
import type { Socket } from "./live.ts";

const ACCEPTED = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"; // RFC 6455, 4.2.2
const MOST_BYTES = 64 << 20; // of a message; the platform's are smaller
const HANDSHAKE_MS = 15_000;
const [CONNECTING, OPEN, CLOSING, CLOSED] = [0, 1, 2, 3];
const [CONTINUED, TEXT, BINARY, CLOSE, PING, PONG] = [0, 1, 2, 8, 9, 10];
const [NORMAL, BROKEN, NO_TEXT, TOO_LARGE] = [1000, 1002, 1007, 1009];

type Handler = ((event: never) => void) | null;

/** A connection; it opens by itself. */
export class NodeSocket implements Socket {
  readyState = CONNECTING;
  onopen: Handler = null;
  onmessage: Handler = null;
  onclose: Handler = null;
  private readonly request: ClientRequest;
  private stream: Duplex | undefined;
  private unread: Buffer = Buffer.alloc(0);
  private message: Buffer[] = [];
  private length = 0;

  constructor(url: string) {
    const key = randomBytes(16).toString("base64");
    const address = url.replace(/^ws/, "http");
    const headers = { Connection: "Upgrade", Upgrade: "websocket", "Sec-WebSocket-Key": key, "Sec-WebSocket-Version": "13" };
    this.request = (address.startsWith("https:") ? securely : plainly)(address, { headers, timeout: HANDSHAKE_MS });
    this.request.on("upgrade", (response: IncomingMessage, stream: Duplex, head: Buffer) => this.onUpgrade(key, response, stream, head));
    this.request.on("response", () => this.request.destroy());
    this.request.on("timeout", () => this.request.destroy());
    this.request.on("error", () => undefined); // "close" follows
    this.request.on("close", () => {
      if (!this.stream) this.closed();
    });
    this.request.end();
  }

  /** Sends a message. */
  send(text: string): void {
    if (this.readyState === OPEN) this.write(TEXT, Buffer.from(text));
  }

  /** Says that it ends, and ends. */
  close(): void {
    this.fail(NORMAL);
  }

  private onUpgrade(key: string, response: IncomingMessage, stream: Duplex, head: Buffer): void {
    this.stream = stream;
    stream.on("error", () => undefined);
    stream.on("close", () => this.closed());
    stream.on("end", () => stream.end());
    const accepted = createHash("sha1").update(key + ACCEPTED).digest("base64");
    if (this.readyState !== CONNECTING || response.headers["sec-websocket-accept"] !== accepted) {
      stream.destroy();
      return;
    }
    if ("setTimeout" in stream) (stream as Duplex & { setTimeout: (ms: number) => void }).setTimeout(0);
    this.readyState = OPEN;
    this.onopen?.({} as never);
    stream.on("data", (data: Buffer) => this.onData(data));
    if (head.length) this.onData(head);
  }

  private closed(): void {
    if (this.readyState === CLOSED) return;
    this.readyState = CLOSED;
    this.onclose?.({} as never);
  }

  private onData(data: Buffer): void {
    this.unread = this.unread.length ? Buffer.concat([this.unread, data]) : data;
    while (this.readyState === OPEN) {
      const frame = this.take();
      if (!frame) return;
      this.onFrame(frame.first, frame.payload);
    }
  }

  /** The next whole frame of what came; none where more has to come. */
  private take(): { first: number; payload: Buffer } | undefined {
    const { unread } = this;
    if (unread.length < 2) return undefined;
    const [first = 0, second = 0] = unread;
    const short = second & 0x7f;
    const head = short === 126 ? 4 : short === 127 ? 10 : 2;
    if (unread.length < head) return undefined;
    const length = short === 126 ? unread.readUInt16BE(2) : short === 127 ? Number(unread.readBigUInt64BE(2)) : short;
    if (first & 0x70 || second & 0x80) return this.fail(BROKEN); // extensions, or a mask: servers send none (5.1)
    if (this.length + length > MOST_BYTES) return this.fail(TOO_LARGE);
    if (unread.length < head + length) return undefined;
    this.unread = unread.subarray(head + length);
    return { first, payload: unread.subarray(head, head + length) };
  }

  private onFrame(first: number, payload: Buffer): void {
    const [isLast, kind] = [(first & 0x80) !== 0, first & 0x0f];
    if (kind >= CLOSE) {
      if (!isLast || payload.length > 125) return void this.fail(BROKEN);
      if (kind === PING) this.write(PONG, payload);
      else if (kind === CLOSE) this.fail(NORMAL);
      return;
    }
    const isBegun = this.message.length > 0;
    if (kind > BINARY || isBegun !== (kind === CONTINUED)) return void this.fail(BROKEN);
    this.message.push(payload);
    this.length += payload.length;
    if (isLast) this.deliver();
  }

  private deliver(): void {
    const whole = Buffer.concat(this.message);
    this.message = [];
    this.length = 0;
    let data: string;
    try {
      data = new TextDecoder("utf-8", { fatal: true }).decode(whole);
    } catch {
      return void this.fail(NO_TEXT);
    }
    this.onmessage?.({ data } as never);
  }

  private write(kind: number, payload: Buffer): void {
    const { length } = payload;
    const mask = randomBytes(4);
    const size = length < 126 ? Buffer.from([0x80 | length]) : length < 65_536 ? Buffer.from([0xfe, length >> 8, length & 0xff]) : long(length);
    const masked = Buffer.from(payload);
    for (let at = 0; at < length; at++) masked[at] = (masked[at] ?? 0) ^ (mask[at & 3] ?? 0);
    this.stream?.write(Buffer.concat([Buffer.from([0x80 | kind]), size, mask, masked]));
  }

  private fail(code: number): undefined {
    if (this.readyState >= CLOSING) return;
    if (this.readyState === OPEN) this.write(CLOSE, Buffer.from([code >> 8, code & 0xff]));
    this.readyState = CLOSING;
    if (this.stream) this.stream.end(() => this.stream?.destroy());
    else this.request.destroy();
  }
}

function long(length: number): Buffer {
  const size = Buffer.alloc(9);
  size[0] = 0xff;
  size.writeBigUInt64BE(BigInt(length), 1);
  return size;
}
