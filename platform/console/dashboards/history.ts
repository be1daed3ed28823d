/** What was changed, to be taken back and done again. */
export interface History<T> {
  past: readonly T[];
  now: T;
  future: readonly T[];
}

const KEPT = 100;

export function begin<T>(now: T): History<T> {
  return { past: [], now, future: [] };
}

export function change<T>(history: History<T>, now: T): History<T> {
  if (now === history.now) return history;
  return { past: [...history.past, history.now].slice(-KEPT), now, future: [] };
}

/** The last change goes on, letter by letter: it is one step back. */
export function goOn<T>(history: History<T>, now: T): History<T> {
  return { ...history, now, future: [] };
}

export function undo<T>({ past, now, future }: History<T>): History<T> {
  const last = past[past.length - 1];
  return last === undefined ? { past, now, future } : { past: past.slice(0, -1), now: last, future: [now, ...future] };
}

export function redo<T>({ past, now, future }: History<T>): History<T> {
  const [next, ...rest] = future;
  return next === undefined ? { past, now, future } : { past: [...past, now], now: next, future: rest };
}
