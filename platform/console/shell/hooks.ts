/** What pages use to read, to follow and to keep what is typed. */
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import type { Frame, Wanted } from "../client/live.ts";
import { healed, live } from "./api.ts";
import { beBusy } from "./busy.ts";

export interface Loaded<T> {
  /** What was read last; stays while it is read again. */
  data: T | undefined;
  error: unknown;
  isLoading: boolean;
  reload: () => void;
}

/** Reads when `keys` change, when the connection is back, and each `everyMs` while the page is looked at. */
export function useLoad<T>(read: (abort: AbortSignal) => Promise<T>, keys: readonly unknown[], everyMs = 0): Loaded<T> {
  const [state, setState] = useState<{ data: T | undefined; error: unknown; isLoading: boolean; answers?: string }>({
    data: undefined,
    error: undefined,
    isLoading: true,
  });
  const asked = JSON.stringify(keys);
  const isAwaited = state.answers !== asked;
  useLayoutEffect(() => (isAwaited ? beBusy() : undefined), [isAwaited]);
  const [turn, setTurn] = useState(0);
  const latest = useRef(read);
  latest.current = read;
  const back = healed.value;
  useEffect(() => {
    const abort = new AbortController();
    setState((before) => ({ ...before, isLoading: true }));
    latest.current(abort.signal).then(
      (data) => !abort.signal.aborted && setState({ data, error: undefined, isLoading: false, answers: asked }),
      (error: unknown) => !abort.signal.aborted && setState((before) => ({ ...before, error, isLoading: false, answers: asked })),
    );
    return () => abort.abort();
  }, [...keys, turn, back]);
  useEffect(() => {
    if (!everyMs) return;
    const timer = setInterval(() => !document.hidden && setTurn((n) => n + 1), everyMs);
    return () => clearInterval(timer);
  }, [everyMs]);
  return { ...state, reload: () => setTurn((n) => n + 1) };
}

/** Follows what happens while the part is shown; `onGap` where something may be missing. */
export function useLive(wanted: Wanted | null, onFrame: (frame: Frame) => void, onGap?: () => void): void {
  const latest = useRef({ onFrame, onGap });
  latest.current = { onFrame, onGap };
  const key = JSON.stringify(wanted);
  useEffect(() => {
    if (!wanted) return;
    return live.subscribe(wanted, {
      onFrame: (frame) => latest.current.onFrame(frame),
      onGap: () => latest.current.onGap?.(),
      onEnd: () => latest.current.onGap?.(),
    });
  }, [key]);
}

/** Calls at most once each `ms`, the last time too; what happens often is read again seldom. */
export function useSeldom(work: () => void, ms: number): () => void {
  const latest = useRef(work);
  latest.current = work;
  const timer = useRef<ReturnType<typeof setTimeout> | undefined>(undefined);
  useEffect(() => () => clearTimeout(timer.current), []);
  return () => {
    timer.current ??= setTimeout(() => {
      timer.current = undefined;
      if (!document.hidden) latest.current();
    }, ms);
  };
}

/** A state that outlives a reload of the page, for what somebody is typing; never for secrets. */
export function useDraft(name: string, initial: string): [string, (value: string) => void, () => void] {
  const key = `terrazzo-draft-${name}`;
  const [value, setValue] = useState(() => sessionStorage.getItem(key) ?? initial);
  const set = (text: string) => {
    setValue(text);
    sessionStorage.setItem(key, text.slice(0, 100_000));
  };
  const forget = () => {
    sessionStorage.removeItem(key);
    setValue(initial);
  };
  return [value, set, forget];
}

/** A value that follows another only when that has rested. */
export function useRested<T>(value: T, ms: number): T {
  const [rested, setRested] = useState(value);
  useEffect(() => {
    const timer = setTimeout(() => setRested(value), ms);
    return () => clearTimeout(timer);
  }, [value, ms]);
  return rested;
}
