/** What happens, as it happens: subscriptions over one WebSocket that heals itself and goes on where it was. */

export type LiveKind = "grid" | "mosaic" | "event" | "retainer" | "terminal" | "command" | "object" | "diagnostic" | "attention" | "trace";
export type LiveState = "idle" | "connecting" | "open" | "lost";

/** One frame: `seq` rises, `data` is as the action answers it that reads the same. */
export interface Frame {
  kind: LiveKind;
  seq: number;
  data: Record<string, unknown>;
}

/** Frames that will not come: more than the client took, or older than what is kept. */
export interface Gap {
  since: number;
  seq: number;
  lost: number | null;
  reason: string;
}

export interface Wanted {
  kinds: LiveKind[];
  object_id?: string | number;
  terminal_id?: string | number;
  keys?: string[];
}

export interface Listener {
  onFrame: (frame: Frame) => void;
  /** Something may be missing: read again what is shown. So begins a subscription that `settled` has not waited for. */
  onGap?: (gap: Gap) => void;
  /** The platform refused or ended the subscription. */
  onEnd?: (code: number, info: string) => void;
  /** It is subscribed: what follows `seq` is told. */
  onStart?: (seq: number) => void;
}

interface Subscription extends Listener {
  wanted: Wanted;
  number: number; // the platform's; 0: not subscribed now
  since: number | undefined; // the last frame that came
  isAwaited: boolean; // it was asked for, and has neither begun nor been given up
  isLate: boolean; // what was read meanwhile may lack what happened before it began
}

interface Message {
  resp: string;
  actionid?: number;
  code?: number;
  info?: string;
  result?: { subscription: number; seq: number };
  subscription?: number;
  kind?: LiveKind;
  seq?: number;
  data?: Record<string, unknown>;
  gap?: Gap;
  end?: { code: number; info: string };
}

/** What is used of a WebSocket. */
export interface Socket {
  readonly readyState: number;
  onopen: ((event: never) => void) | null;
  onmessage: ((event: never) => void) | null;
  onclose: ((event: never) => void) | null;
  send(text: string): void;
  close(): void;
}

export interface LiveOptions {
  /** `ws://host:port/apiproxy/api`. */
  url: () => string;
  /** A token, as it is when the connection opens; without one the page's session counts. */
  token?: () => string | undefined;
  onState?: (state: LiveState) => void;
  /** The shortest and the longest pause before a lost connection is tried again. */
  leastMs?: number;
  mostMs?: number;
  /** So often the platform is asked whether it is there; where nothing came since the last time, the connection is lost. */
  quietMs?: number;
  /** Opens a WebSocket; without it `globalThis.WebSocket` does. */
  open?: (url: string) => Socket;
}

const UNUSED_MS = 3_000; // a page that follows another may want it again
const SETTLED_MS = 300; // what a reader would notice
const LATE = "late"; // the reason of a gap that nothing is known of
const QUIET_MS = 30_000;
const [CONNECTING, OPEN] = [0, 1]; // states of a socket

/** Connects while there is a subscription, and not otherwise. */
export class Live {
  private readonly options: LiveOptions;
  private readonly subscriptions = new Map<number, Subscription>(); // by our own number
  private readonly byNumber = new Map<number, Subscription>();
  private socket: Socket | undefined;
  private watch: ReturnType<typeof setInterval> | undefined;
  private hasHeard = false; // since the last look
  private timer: ReturnType<typeof setTimeout> | undefined;
  private unused: ReturnType<typeof setTimeout> | undefined;
  private failures = 0;
  private count = 0;
  private readers: (() => void)[] = []; // that wait until all has settled
  state: LiveState = "idle";

  constructor(options: LiveOptions) {
    this.options = options;
  }

  /** Subscribes, to what comes after the frame `since` or from now on; the result unsubscribes. */
  subscribe(wanted: Wanted, listener: Listener, since?: number): () => void {
    const id = ++this.count;
    const subscription: Subscription = { ...listener, wanted, number: 0, since, isAwaited: since === undefined, isLate: false };
    this.subscriptions.set(id, subscription);
    clearTimeout(this.unused);
    if (this.state === "open") this.ask(id, subscription);
    else if (this.state === "idle") this.connect();
    return () => this.unsubscribe(id);
  }

  /**
   * Fulfilled when all that was subscribed in this turn, or before, has begun: what is read from then on and what frames tell have
   * nothing between them. It waits for a moment at the most; what begins later begins with `onGap`.
   */
  async settled(mostMs = SETTLED_MS): Promise<void> {
    await Promise.resolve();
    if (this.state === "lost") this.giveUp();
    if (!this.isSettling()) return;
    let timer: ReturnType<typeof setTimeout> | undefined;
    await new Promise<void>((resume) => {
      this.readers.push(resume);
      timer = setTimeout(() => this.giveUp(), mostMs);
    });
    clearTimeout(timer);
  }

  /** Connects for a subscription that will be there in a moment. */
  prepare(): void {
    if (this.state !== "idle") return;
    this.connect();
    if (!this.subscriptions.size) this.leaveLater();
  }

  /** Tries at once, as after a login or when the machine wakes up. */
  retry(): void {
    if (this.state === "lost") this.connect();
  }

  /** Ends the connection; subscriptions go on with the next one. */
  restart(): void {
    this.leave();
    if (this.subscriptions.size) this.connect();
  }

  /** Ends the connection and all subscriptions. */
  close(): void {
    this.subscriptions.clear();
    clearTimeout(this.unused);
    this.leave();
  }

  private unsubscribe(id: number): void {
    const subscription = this.subscriptions.get(id);
    if (!subscription) return;
    this.subscriptions.delete(id);
    if (subscription.number) {
      this.byNumber.delete(subscription.number);
      this.send({ action: "unsubscribe", subscription: subscription.number });
    }
    this.settle();
    if (!this.subscriptions.size) this.leaveLater();
  }

  private leaveLater(): void {
    clearTimeout(this.unused);
    this.unused = setTimeout(() => this.leave(), UNUSED_MS);
  }

  private isSettling(): boolean {
    for (const each of this.subscriptions.values()) if (each.isAwaited) return true;
    return false;
  }

  /** Lets those read who wait, where nothing is awaited any more. */
  private settle(): void {
    if (!this.readers.length || this.isSettling()) return;
    const readers = this.readers;
    this.readers = [];
    for (const resume of readers) resume();
  }

  /** Waits no longer for what has not begun. */
  private giveUp(): void {
    for (const each of this.subscriptions.values()) {
      if (each.isAwaited) [each.isAwaited, each.isLate] = [false, true];
    }
    this.settle();
  }

  private leave(): void {
    this.drop();
    this.change("idle");
  }

  private connect(): void {
    clearTimeout(this.timer);
    this.change(this.failures ? "lost" : "connecting");
    const url = this.options.url();
    const socket: Socket = (this.socket = this.options.open?.(url) ?? new WebSocket(url));
    socket.onopen = () => this.onOpen(socket);
    socket.onmessage = (event: { data: unknown }) => {
      if (socket === this.socket) this.onText(String(event.data));
    };
    socket.onclose = () => {
      if (socket === this.socket) this.onClose();
    };
  }

  /** Gives the connection up, and tries another one. */
  private lose(): void {
    const socket = this.socket;
    this.socket = undefined;
    socket?.close();
    this.onClose();
  }

  private look(): void {
    if (!this.hasHeard) return this.lose();
    this.hasHeard = false;
    this.send({ action: "ping" });
  }

  private drop(): void {
    clearTimeout(this.timer);
    clearInterval(this.watch);
    const socket = this.socket;
    this.socket = undefined;
    if (socket?.readyState === CONNECTING) socket.onopen = () => socket.close();
    else socket?.close();
    this.forget();
  }

  private forget(): void {
    this.byNumber.clear();
    for (const each of this.subscriptions.values()) each.number = 0;
  }

  private onOpen(socket: Socket): void {
    if (socket !== this.socket) return;
    this.failures = 0;
    this.hasHeard = true;
    this.watch = setInterval(() => this.look(), this.options.quietMs ?? QUIET_MS);
    const token = this.options.token?.();
    if (token) this.send({ action: "ping", Authorization: `Bearer ${token}` });
    this.change("open");
    for (const [id, each] of this.subscriptions) this.ask(id, each);
  }

  private onClose(): void {
    clearInterval(this.watch);
    this.forget();
    this.failures += 1;
    this.change("lost");
    const { leastMs = 500, mostMs = 30_000 } = this.options;
    const most = Math.min(mostMs, leastMs * 2 ** Math.min(this.failures, 10));
    this.timer = setTimeout(() => this.connect(), most * (0.5 + Math.random() / 2));
  }

  private ask(id: number, each: Subscription): void {
    const since = each.since === undefined ? {} : { since: each.since };
    this.send({ action: "subscribe", actionid: id, ...each.wanted, ...since });
  }

  private onText(text: string): void {
    this.hasHeard = true;
    let message: Message;
    try {
      message = JSON.parse(text) as Message;
    } catch {
      return this.lose(); // something else than the platform answers
    }
    if (message.resp === "subscribe") this.onAnswer(message);
    else if (message.resp === "live") this.onLive(message);
  }

  private onAnswer(message: Message): void {
    const subscription = this.subscriptions.get(message.actionid ?? 0);
    if (subscription) this.begin(subscription, message);
    else if (message.result) this.send({ action: "unsubscribe", subscription: message.result.subscription });
    this.settle();
  }

  private begin(subscription: Subscription, message: Message): void {
    subscription.isAwaited = false;
    if (message.code !== 200 || !message.result) {
      subscription.onEnd?.(message.code ?? 0, message.info ?? "");
      return;
    }
    subscription.number = message.result.subscription;
    subscription.since ??= message.result.seq;
    this.byNumber.set(subscription.number, subscription);
    subscription.onStart?.(subscription.since);
    if (!subscription.isLate) return;
    subscription.isLate = false;
    subscription.onGap?.({ since: subscription.since, seq: subscription.since, lost: null, reason: LATE });
  }

  private onLive(message: Message): void {
    const subscription = this.byNumber.get(message.subscription ?? 0);
    if (!subscription) return;
    if (message.gap) {
      subscription.since = message.gap.seq;
      subscription.onGap?.(message.gap);
    } else if (message.end) {
      this.byNumber.delete(subscription.number);
      subscription.number = 0;
      subscription.onEnd?.(message.end.code, message.end.info);
    } else if (message.kind && message.data) {
      subscription.since = message.seq;
      subscription.onFrame({ kind: message.kind, seq: message.seq ?? 0, data: message.data });
    }
  }

  private send(message: object): void {
    if (this.socket?.readyState === OPEN) this.socket.send(JSON.stringify(message));
  }

  private change(state: LiveState): void {
    if (state === this.state) return;
    this.state = state;
    if (state === "lost" && this.readers.length) this.giveUp();
    this.options.onState?.(state);
  }
}
