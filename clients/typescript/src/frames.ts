/** A live subscription as an async iterator: frames and gaps in order, over lost connections, without a bound in time. */
import { GatewayError } from "./gateway.ts";
import type { Frame, Gap, Live, Wanted } from "./live.ts";

/** Frames that wait to be taken; where there are more, the subscription rests until they are. */
export const MOST_WAITING = 1_000;

/** What `Frames` needs of a client. */
export interface Source {
  live: Live;
  /** Asks the platform whether it is there, and who asks is known; throws where not. */
  check?: () => Promise<void>;
  /** Sees that the token is good again, after a subscription was refused for it; throws where it can't be. */
  renew: () => Promise<void>;
  onEnd?: () => void;
}

export interface FramesOptions {
  /** The number after which to begin; from now on without it. */
  since?: number;
  mostWaiting?: number;
}

/** Whether something that came is a gap. */
export function isGap(happened: Frame | Gap): happened is Gap {
  return "lost" in happened;
}

const NOT_AUTHENTICATED = 10402;

/** One subscription. A loop that is left (`break`, `return`) ends it. */
export class Frames implements AsyncIterableIterator<Frame | Gap> {
  private readonly source: Source;
  private readonly wanted: Wanted;
  private readonly mostWaiting: number;
  private waiting: (Frame | Gap)[] = [];
  private takers: { resolve: (result: IteratorResult<Frame | Gap>) => void; reject: (error: unknown) => void }[] = [];
  private stop: (() => void) | undefined;
  private error: unknown;
  private isOver = false;
  private hasRenewed = false;
  /** Fulfilled when the platform has subscribed it, or it has ended; rejected with what `next` throws. */
  readonly started: Promise<void>;
  private onStarted: (error?: unknown) => void = () => undefined;
  /** The number of the last frame or gap that came; another iterator goes on after it with `since`. */
  since: number | undefined;
  /** How often the subscription rested, because frames were not taken. */
  rests = 0;

  constructor(source: Source, wanted: Wanted, options: FramesOptions = {}) {
    this.source = source;
    this.wanted = wanted;
    this.since = options.since;
    this.mostWaiting = options.mostWaiting ?? MOST_WAITING;
    this.started = new Promise((resolve, reject) => {
      this.onStarted = (error) => (error === undefined ? resolve() : reject(error as Error));
    });
    this.started.catch(() => undefined); // who doesn't wait for it is told by `next`
    void this.begin();
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  /** The next frame or gap; throws GatewayError where the platform ended the subscription for good. */
  next(): Promise<IteratorResult<Frame | Gap>> {
    const value = this.waiting.shift();
    if (value) {
      if (!this.waiting.length && !this.stop && !this.isOver) this.subscribe();
      return Promise.resolve({ value, done: false });
    }
    if (this.error !== undefined) {
      const error = this.error;
      this.error = undefined;
      return Promise.reject(error as Error);
    }
    if (this.isOver) return Promise.resolve({ value: undefined, done: true });
    return new Promise((resolve, reject) => this.takers.push({ resolve, reject }));
  }

  /** Ends the subscription. */
  return(): Promise<IteratorResult<Frame | Gap>> {
    this.end();
    this.waiting = [];
    return Promise.resolve({ value: undefined, done: true });
  }

  private async begin(): Promise<void> {
    try {
      await this.source.check?.();
      if (!this.isOver) this.subscribe();
    } catch (error) {
      this.fail(error);
    }
  }

  private subscribe(): void {
    const listener = {
      onStart: (seq: number) => {
        this.since ??= seq;
        this.hasRenewed = false;
        this.onStarted();
      },
      onFrame: (frame: Frame) => this.put(frame),
      onGap: (gap: Gap) => this.put(gap),
      onEnd: (code: number, info: string) => void this.onEnd(code, info),
    };
    this.stop = this.source.live.subscribe(this.wanted, listener, this.since);
  }

  private put(happened: Frame | Gap): void {
    this.since = happened.seq;
    const taker = this.takers.shift();
    if (taker) return taker.resolve({ value: happened, done: false });
    this.waiting.push(happened);
    if (this.waiting.length < this.mostWaiting) return;
    // What comes meanwhile is kept by the platform for a while, and follows or is said to be lost.
    this.rests += 1;
    this.rest();
  }

  private rest(): void {
    this.stop?.();
    this.stop = undefined;
  }

  private async onEnd(code: number, info: string): Promise<void> {
    if (code !== NOT_AUTHENTICATED || this.hasRenewed) return this.fail(new GatewayError(code, info, 200));
    this.hasRenewed = true;
    try {
      await this.source.renew();
    } catch (error) {
      this.fail(error);
    }
  }

  private fail(error: unknown): void {
    if (this.isOver) return;
    this.onStarted(error);
    const taker = this.takers.shift();
    if (taker) taker.reject(error);
    else this.error = error;
    this.end();
  }

  private end(): void {
    this.isOver = true;
    this.onStarted();
    this.rest();
    this.source.onEnd?.();
    for (const { resolve } of this.takers.splice(0)) resolve({ value: undefined, done: true });
  }
}
