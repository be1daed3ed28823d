/** What pages use to read, to follow and to send. */
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import { type Frame, Unreachable, type Wanted } from "terrazzo-client";
import { healed, isReachable, live } from "./api.ts";
import { beBusy } from "./busy.ts";
import { readPatiently } from "./patience.ts";
import { replaceQuery, route } from "./routes.ts";

const SECOND_MS = 1_000;

export interface Loaded<T> {
  /** What was read last; stays while it is read again. */
  data: T | undefined;
  error: unknown;
  isLoading: boolean;
  reload: () => void;
}

/** Says that the page is not all there yet, while what it shows first is awaited. */
export function useBusy(isAwaited: boolean): void {
  useLayoutEffect(() => (isAwaited ? beBusy() : undefined), [isAwaited]);
}

interface Reading {
  abort: AbortController;
  /** Asked for again meanwhile: what is answered may be old already. */
  isAgain: boolean;
}

/**
 * Reads when what is in `keys` changes, when the connection is back (requests may fail while the live one stays), and each `everyMs` while the page is looked at. Who asks again while
 * it reads gets the answer, then a second one: where that is asked more often than it can be answered, something is shown still.
 * A platform at a limit is asked again when it says, before its refusal is shown.
 */
export function useLoad<T>(read: (abort: AbortSignal) => Promise<T>, keys: readonly unknown[], everyMs = 0): Loaded<T> {
  const [state, setState] = useState<{ data: T | undefined; error: unknown; isLoading: boolean; answers?: string }>({
    data: undefined,
    error: undefined,
    isLoading: true,
  });
  const asked = JSON.stringify(keys);
  const isAwaited = state.answers !== asked;
  useBusy(isAwaited);
  const latest = useRef(read);
  latest.current = read;
  const reading = useRef<Reading | null>(null);
  const isMissed = useRef(false); // the last request did not reach the platform
  const start = (): void => {
    isMissed.current = false;
    const own: Reading = { abort: new AbortController(), isAgain: false };
    const end = (next: (before: typeof state) => typeof state): void => {
      if (own.abort.signal.aborted) return;
      reading.current = null;
      setState(next);
      if (own.isAgain) start();
    };
    reading.current = own;
    setState((before) => ({ ...before, isLoading: true }));
    readPatiently(latest.current, own.abort.signal).then(
      (data) => end(() => ({ data, error: undefined, isLoading: false, answers: asked })),
      (error: unknown) => {
        // a lost connection is told of above the page; what was read before stays readable
        const isTold = error instanceof Unreachable;
        if (reading.current === own) isMissed.current = isTold;
        end((before) => ({ ...before, error: isTold && before.answers === asked ? before.error : error, isLoading: false, answers: asked }));
      },
    );
  };
  const startNow = useRef(start);
  startNow.current = start;
  const reload = (): void => {
    if (reading.current) reading.current.isAgain = true;
    else startNow.current();
  };
  useEffect(() => {
    startNow.current();
    return () => {
      reading.current?.abort.abort();
      reading.current = null;
    };
  }, [asked, healed.value]);
  useEffect(() => {
    if (isMissed.current && isReachable.value) reload();
  }, [isReachable.value]);
  useEffect(() => {
    if (!everyMs) return;
    const timer = setInterval(() => !document.hidden && reload(), everyMs);
    return () => clearInterval(timer);
  }, [everyMs]);
  return { ...state, reload };
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

/** Calls at most once each `ms`, the last time too; what happens often is read again seldom, and while nobody looks when somebody does. */
export function useSeldom(work: () => void, ms: number): () => void {
  const latest = useRef(work);
  latest.current = work;
  const timer = useRef<ReturnType<typeof setTimeout> | undefined>(undefined);
  const isLate = useRef(false); // something happened while the page was not looked at
  const call = (): void => {
    timer.current = undefined;
    isLate.current = document.hidden;
    if (!document.hidden) latest.current();
  };
  useEffect(() => {
    const look = (): void => {
      if (isLate.current) call();
    };
    document.addEventListener("visibilitychange", look);
    return () => {
      document.removeEventListener("visibilitychange", look);
      clearTimeout(timer.current);
    };
  }, []);
  return () => {
    timer.current ??= setTimeout(call, ms);
  };
}

export interface Sending {
  /** Of a form's `onSubmit` or a button's `onClick`; while it is under way a second click does nothing. */
  send: (event: Event) => void;
  isBusy: boolean;
  error: unknown;
}

/** What a person sends: once at a time, and what it was refused with until the next time. */
export function useSend(work: () => Promise<void>): Sending {
  const [error, setError] = useState<unknown>();
  const [isBusy, setBusy] = useState(false);
  const isUnderWay = useRef(false);
  const go = async (): Promise<void> => {
    if (isUnderWay.current) return;
    isUnderWay.current = true;
    setBusy(true);
    setError(undefined);
    try {
      await work();
    } catch (failure) {
      setError(failure);
    } finally {
      isUnderWay.current = false;
      setBusy(false);
    }
  };
  const send = (event: Event): void => {
    event.preventDefault();
    void go();
  };
  return { send, isBusy, error };
}

/** Whether a click is the second of a double click: it was meant for what stood there before, and must not say yes to a question. */
export function isSecondClick(event: MouseEvent): boolean {
  return event.detail > 1;
}

/** Reads again a little after the page was opened: a rate takes two readings. */
export function useSecondReading(reload: () => void): void {
  useEffect(() => {
    const timer = setTimeout(reload, SECOND_MS);
    return () => clearTimeout(timer);
  }, []);
}

/** Rises each `ms` while the page is looked at: for lists that no live frame tells of. */
export function useTurns(ms: number): number {
  const [turns, setTurns] = useState(0);
  useEffect(() => {
    const timer = setInterval(() => !document.hidden && setTurns((n) => n + 1), ms);
    return () => clearInterval(timer);
  }, [ms]);
  return turns;
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

/** Opens what a link asks for (`?do=add`), once: the link is another one then. */
export function useAsked(name: string, open: () => void): void {
  const asked = route.value.query.get("do");
  useEffect(() => {
    if (asked !== name) return;
    replaceQuery({ do: "" });
    open();
  }, [asked]);
}
