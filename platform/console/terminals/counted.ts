/** How many of some terminals each configuration has. */

export interface Counted {
  counts: ReadonlyMap<string, number>;
  /** There are more terminals than were looked at. */
  isCut: boolean;
}

/** Counts the terminals of a list, of which there are `total` in all. */
export function byConfiguration(rows: readonly { config_id: string | null }[], total: number): Counted {
  const counts = new Map<string, number>();
  for (const { config_id } of rows) if (config_id) counts.set(config_id, (counts.get(config_id) ?? 0) + 1);
  return { counts, isCut: total > rows.length };
}
