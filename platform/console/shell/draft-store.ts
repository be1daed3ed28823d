/** What is being typed, in the tab's own storage: bounded in size, number and age, and each user's own. */

const PREFIX = "terrazzo-draft";
/** Characters of one draft, and of all of a tab. */
export const MOST_OF_ONE = 1_000_000;
export const MOST_OF_ALL = 3_000_000;
export const MOST_DRAFTS = 50;
export const KEPT_MS = 7 * 86_400_000;

type Stored = Pick<Storage, "length" | "key" | "getItem" | "setItem" | "removeItem">;

interface Entry {
  key: string;
  atMs: number;
  length: number;
}

/** Drafts by user and name; what does not fit is not kept at all, as half a text would look like all of it. */
export class DraftStore {
  private readonly storage: Stored;
  private readonly nowMs: () => number;

  constructor(storage: Stored, nowMs: () => number) {
    this.storage = storage;
    this.nowMs = nowMs;
  }

  read(user: number, name: string): unknown {
    const text = this.storage.getItem(keyOf(user, name));
    if (text === null || this.isOld(timeOf(text))) return undefined;
    try {
      return JSON.parse(text.slice(text.indexOf(" ") + 1)) as unknown;
    } catch {
      return undefined;
    }
  }

  /** Whether it is kept now; the oldest of others make room. */
  keep(user: number, name: string, value: unknown): boolean {
    const key = keyOf(user, name);
    const text = `${this.nowMs()} ${JSON.stringify(value)}`;
    this.storage.removeItem(key); // an old one must not come back as the present one
    if (text.length > MOST_OF_ONE) return false;
    const others = this.entries().sort((a, b) => b.atMs - a.atMs);
    let all = text.length + others.reduce((sum, each) => sum + each.length, 0);
    while (others.length >= MOST_DRAFTS || all > MOST_OF_ALL) {
      const oldest = others.pop();
      if (!oldest) break;
      all -= oldest.length;
      this.storage.removeItem(oldest.key);
    }
    try {
      this.storage.setItem(key, text);
      return true;
    } catch {
      return false; // no room in the browser
    }
  }

  remove(user: number, name: string): void {
    this.storage.removeItem(keyOf(user, name));
  }

  /** Removes what is too old, and all that is not this user's. */
  sweep(user: number): void {
    for (const { key, atMs } of this.entries()) if (!key.startsWith(keyOf(user, "")) || this.isOld(atMs)) this.storage.removeItem(key);
  }

  private isOld(atMs: number): boolean {
    return !(Math.abs(this.nowMs() - atMs) < KEPT_MS); // what has no time, or one to come, is none of ours
  }

  private entries(): Entry[] {
    const keys = Array.from({ length: this.storage.length }, (_, i) => this.storage.key(i) ?? "").filter((key) => key.startsWith(PREFIX));
    return keys.map((key) => {
      const text = this.storage.getItem(key) ?? "";
      return { key, atMs: timeOf(text), length: text.length };
    });
  }
}

const keyOf = (user: number, name: string): string => `${PREFIX} ${user} ${name}`;

const timeOf = (text: string): number => Number(/^\d{1,15}(?= )/.exec(text)?.[0] ?? NaN);
