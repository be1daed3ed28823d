/** The same for Node.js, which has no WebSocket of its own before version 22. */
import { Client as AnyClient, type ClientOptions } from "./client.ts";
import type { Socket } from "./live.ts";
import { NodeSocket } from "./node-socket.ts";

export * from "./index.ts";

/** `terrazzo serve` on the same machine. */
const URL_HERE = "http://127.0.0.1:31507";

/** `globalThis.WebSocket` where there is one. */
export function openSocket(url: string): Socket {
  return typeof WebSocket === "undefined" ? new NodeSocket(url) : new WebSocket(url);
}

/** As in a browser; without an address it is the platform on the same machine. */
export class Client extends AnyClient {
  constructor(options: ClientOptions = {}) {
    super({ open: openSocket, ...options, url: options.url ?? URL_HERE });
  }
}
