/** What somebody types or composes outlives a reload, and the end of a session: all that is typed goes through `useDraft` or `useKept`. */
import { useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { isOutdated, session } from "./api.ts";
import { DraftStore } from "./draft-store.ts";

const REST_MS = 300; // how long typing rests before it is written

interface Late {
  user: number;
  name: string;
  /** Undefined: removed. */
  value: unknown;
  isStored: boolean;
}

const store = new DraftStore(sessionStorage, () => Date.now());
/** What is to be written yet, by name. */
const late = new Map<string, Late>();
/** What may not be stored, or is too long for that: it is there while the page is, and whoever leaves is asked. */
const held = new Map<string, unknown>();
let timer: ReturnType<typeof setTimeout> | undefined;
let sweptFor: number | undefined;

/** Whose drafts these are; null where nobody is logged in. */
function whose(): number | null {
  const user = session.peek()?.id ?? null;
  if (user !== null && user !== sweptFor) store.sweep((sweptFor = user));
  return user;
}

function write(): void {
  clearTimeout(timer);
  for (const { user, name, value, isStored } of late.values()) {
    held.delete(name);
    if (value === undefined || !isStored) store.remove(user, name);
    if (value !== undefined && !(isStored && store.keep(user, name, value))) held.set(name, value);
  }
  late.clear();
}

addEventListener("pagehide", write);
document.addEventListener("visibilitychange", () => document.hidden && write()); // a phone ends hidden pages without a word
addEventListener("beforeunload", (event) => {
  write();
  if (held.size) event.preventDefault();
});

/** What was kept under a name, where it has the form of `like`. */
export function readDraft<T>(name: string, like: T): T | undefined {
  const user = whose();
  if (user === null) return undefined;
  write();
  return formed(held.get(name) ?? store.read(user, name), like);
}

/** Another console may have kept it: a value of another form is dropped, and a field that is new has its first value. */
export function formed<T>(found: unknown, like: T): T | undefined {
  if (found === undefined || found === null || typeof found !== typeof like || Array.isArray(found) !== Array.isArray(like)) return undefined;
  return (typeof found === "object" && !Array.isArray(found) ? { ...like, ...found } : found) as T;
}

/** Forgets what was kept under a name, at once. */
export function forgetDraft(name: string): void {
  keepLater(name, undefined, true);
  write();
}

function keepLater(name: string, value: unknown, isStored: boolean): void {
  const user = whose();
  if (user === null) return;
  late.set(name, { user, name, value, isStored });
  clearTimeout(timer);
  timer = setTimeout(write, REST_MS);
}

/** Keeps a value under a name, each time that it is another one; undefined: there is nothing to keep. What is not `isStored` outlives the dialog, but no reload. */
export function useKept(name: string, value: unknown, isStored = true): void {
  const kept = useRef("");
  // before the page is drawn: whoever leaves right after a letter finds it again
  useLayoutEffect(() => {
    if (value !== undefined || kept.current === name) keepLater(name, value, isStored);
    kept.current = name;
  }, [name, value, isStored]);
}

/** Asks whoever closes the tab while something large is not saved, as the draft goes with the tab; not who reloads for an upgrade. */
export function useAskedBeforeLeaving(isChanged: boolean): void {
  useLayoutEffect(() => {
    if (!isChanged) return undefined;
    const ask = (event: BeforeUnloadEvent): void => void (isOutdated.peek() || event.preventDefault());
    addEventListener("beforeunload", ask);
    return () => removeEventListener("beforeunload", ask);
  }, [isChanged]);
}

export interface Draft<T> {
  value: T;
  set: (next: T | ((before: T) => T)) => void;
  /** It was sent or given up: the value is the first one again, and nothing is kept. */
  forget: () => void;
  /** That was sent, and the form stays: it is forgotten, unless something else has been typed meanwhile. */
  forgetSent: (sent: T) => void;
  /** What is shown was typed before the page was loaded, or the dialog opened. */
  isBack: boolean;
}

const isSame = (a: unknown, b: unknown): boolean => a === b || JSON.stringify(a) === JSON.stringify(b);

/**
 * A state that outlives a reload, for what somebody types: one name for one thing, so with the uid of what it is about. `part` takes out of it what may not be
 * stored, as secrets never are: undefined where nothing is left, null where it is all or nothing.
 */
export function useDraft<T>(name: string, initial: T, part: (value: T) => T | null | undefined = (value) => value): Draft<T> {
  const [first] = useState(initial);
  const [state, setState] = useState(() => begin(name, first));
  const now = state.name === name ? state : begin(name, first);
  if (now !== state) setState(now);
  const kept = useMemo(() => (isSame(now.value, first) ? undefined : part(now.value)), [now.value]);
  useKept(name, kept === null ? now.value : kept, kept !== null);
  const latest = useRef(now.value);
  latest.current = now.value;
  const forget = (): void => {
    forgetDraft(name);
    setState({ name, value: first, isBack: false });
  };
  return {
    value: now.value,
    isBack: now.isBack,
    set: (next) => setState((before) => ({ ...before, value: typeof next === "function" ? (next as (before: T) => T)(before.value) : next })),
    forget,
    forgetSent: (sent) => {
      if (latest.current === sent) forget();
    },
  };
}

function begin<T>(name: string, first: T): { name: string; value: T; isBack: boolean } {
  const found = readDraft(name, first);
  return { name, value: found ?? first, isBack: found !== undefined };
}
