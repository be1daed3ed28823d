/** Which rows of a long list are in the document, and which pages of it are needed. */

/** The rows that are seen, and some ahead: from `first`, up to and without `last`. */
export function windowOf(top: number, height: number, rowPx: number, total: number, ahead: number): { first: number; last: number } {
  const first = Math.max(0, Math.min(total, Math.floor(top / rowPx) - ahead));
  const last = Math.min(total, Math.ceil((top + height) / rowPx) + ahead);
  return { first, last: Math.max(first, last) };
}

/** The pages that rows which are seen stand on, counted from 0. */
export function pagesSeen(top: number, height: number, rowPx: number, pageSize: number): number[] {
  const first = Math.floor(Math.max(0, top) / rowPx / pageSize);
  const last = Math.floor((Math.max(0, top) + Math.max(0, height)) / rowPx / pageSize);
  return Array.from({ length: last - first + 1 }, (_, i) => first + i);
}
