/** Entries of a logbook that is read while it grows. */
interface Keyed {
  /** No two entries have the same. */
  place: string;
}

export interface LogPage<E extends Keyed> {
  rows: E[];
  /** Where the page after these begins; empty: there is none. */
  next: string;
}

export const keyOf = ({ place }: Keyed): string => place;

/** What was read with the newest page over it; where they do not meet, something is missing, and the newest counts alone. */
export function merged<E extends Keyed>(was: LogPage<E> | null, newest: LogPage<E>): LogPage<E> {
  const found = new Set(newest.rows.map(keyOf));
  if (!was || (newest.next && !was.rows.some((row) => found.has(keyOf(row))))) return newest;
  const older = was.rows.filter((row) => !found.has(keyOf(row)));
  return { rows: [...newest.rows, ...older], next: was.next };
}
