/** What a wall's link shows, asked for again and again: subscriptions as those of `Live`, without a connection that stays. */
import type { Gateway, Listener, Result, Wanted } from "terrazzo-client";

type Values = Result<"get_wall_values">["objects"];

export interface WallFeedOptions {
  /** After each try: whether the platform answered. */
  onTry: (error: unknown) => void;
  everyMs?: number;
  /** Nobody looks: nothing is asked. */
  isIdle?: () => boolean;
}

const EVERY_MS = 5_000;

/** Asks while there is a subscription. */
export class WallFeed {
  private readonly gateway: Gateway;
  private readonly options: WallFeedOptions;
  private readonly subscriptions = new Map<number, { objectId: string; listener: Listener }>();
  private readonly newest = new Map<string, string>(); // times by object and code
  private timer: ReturnType<typeof setTimeout> | undefined;
  private count = 0;
  private hasFailed = false;

  constructor(gateway: Gateway, options: WallFeedOptions) {
    this.gateway = gateway;
    this.options = options;
  }

  /** Follows an object's values; the result ends it. */
  subscribe(wanted: Wanted, listener: Listener): () => void {
    const id = ++this.count;
    this.subscriptions.set(id, { objectId: String(wanted.object_id ?? ""), listener });
    this.timer ??= setTimeout(() => void this.ask(), this.options.everyMs ?? EVERY_MS);
    return () => void this.subscriptions.delete(id);
  }

  private async ask(): Promise<void> {
    if (this.options.isIdle?.()) {
      this.again();
      return;
    }
    try {
      const { objects } = await this.gateway.call("get_wall_values", {});
      this.options.onTry(undefined);
      if (this.hasFailed) for (const { listener } of this.subscriptions.values()) listener.onGap?.({ since: 0, seq: 0, lost: null, reason: "connection" });
      this.hasFailed = false;
      this.tell(objects);
    } catch (error) {
      this.hasFailed = true;
      this.options.onTry(error);
    }
    this.again();
  }

  private again(): void {
    this.timer = this.subscriptions.size ? setTimeout(() => void this.ask(), this.options.everyMs ?? EVERY_MS) : undefined;
  }

  private tell(objects: Values): void {
    for (const [objectId, variables] of Object.entries(objects)) {
      const byTime = new Map<string, Record<string, unknown>>();
      for (const { code, time, value } of variables) {
        const key = `${objectId} ${code}`;
        if (time === null || this.newest.get(key) === time) continue;
        this.newest.set(key, time); // the first one, too: it may be newer than what was read when the page came
        byTime.set(time, { ...byTime.get(time), [code]: value });
      }
      const frames = [...byTime].sort(([a], [b]) => (a < b ? -1 : 1));
      for (const [time, value] of frames) this.publish(objectId, { time, value });
    }
  }

  private publish(objectId: string, data: Record<string, unknown>): void {
    for (const each of this.subscriptions.values()) {
      if (each.objectId === objectId) each.listener.onFrame({ kind: "mosaic", seq: 0, data });
    }
  }
}
