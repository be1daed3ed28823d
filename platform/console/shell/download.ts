/** Lists as files: CSV that spreadsheets read, and that no spreadsheet takes for a formula. */
import type { Page } from "terrazzo-client";
import { keepFile } from "../charts/export.ts";
import { csvCell } from "../parts/csv.ts";

const PAGE = 1_000;
/** Rows of a file at most. */
export const MOST_ROWS = 100_000;

/** Rows as CSV, with a line of names. */
export function csvOf(columns: readonly string[], rows: readonly Record<string, unknown>[]): string {
  return [columns.join(","), ...rows.map((row) => columns.map((name) => csvCell(row[name])).join(","))].join("\r\n") + "\r\n";
}

/** Reads a list page by page, tells how far it is, and offers it as a file; how many rows it has. */
export async function exportList<R extends Record<string, unknown>>(
  name: string,
  columns: readonly (keyof R & string)[],
  read: (index: number, size: number, abort: AbortSignal) => Promise<Page<R>>,
  onProgress: (rows: number, total: number) => void,
  abort: AbortSignal,
): Promise<number> {
  const rows: R[] = [];
  for (let index = 1; rows.length < MOST_ROWS; index += 1) {
    const found = await read(index, PAGE, abort);
    rows.push(...found.rows);
    onProgress(rows.length, found.total);
    if (found.rows.length < PAGE) break;
  }
  keepFile(new Blob(["\ufeff", csvOf(columns, rows)], { type: "text/csv;charset=utf-8" }), name);
  return rows.length;
}
