/** Work that takes a while: how far it is stands on every page, so that the one that began it may be left; it can be stopped. */
import { signal } from "@preact/signals";

export interface Work {
  id: number;
  name: string;
  /** Bytes, unless `isRows`. */
  done: number;
  total: number;
  isRows: boolean;
  stop: () => void;
}

export const works = signal<readonly Work[]>([]);
let count = 0;

/** Whoever closes the tab is asked first: what is under way would end. */
function ask(event: BeforeUnloadEvent): void {
  event.preventDefault();
}

/** Does something that tells how far it is and ends where it is stopped; what it throws is thrown. */
export async function work<T>(name: string, act: (tell: (done: number, total: number, isRows?: boolean) => void, abort: AbortSignal) => Promise<T>): Promise<T> {
  const id = ++count;
  const abort = new AbortController();
  const tell = (done: number, total: number, isRows = false): void => {
    works.value = works.value.map((each) => (each.id === id ? { ...each, done, total, isRows } : each));
  };
  works.value = [...works.value, { id, name, done: 0, total: 0, isRows: false, stop: () => abort.abort() }];
  addEventListener("beforeunload", ask);
  try {
    return await act(tell, abort.signal);
  } finally {
    works.value = works.value.filter((each) => each.id !== id);
    if (!works.value.length) removeEventListener("beforeunload", ask);
  }
}

/** Whether an error says no more than that somebody stopped it. */
export function isStop(error: unknown): boolean {
  return error instanceof DOMException && error.name === "AbortError";
}
