/** Rows of mapping and control tables as the documents have them: which cell stands where, and what of it is text. */
import type { GatewayError, Reason } from "terrazzo-client";
import { withinOf } from "../words/server-text.ts";

export type Cell = unknown;
export type Row = readonly Cell[];

/** What a cell of a mapping's row says; the same in rows of 6, 7 and 8 elements. */
export type Part = "code" | "english" | "chinese" | "kind" | "trigger" | "source" | "function" | "argument" | "condition";

export const KINDS = ["STA", "FUNC", "COL", "STT", "EVNT"] as const;
export const TRIGGERS = ["Changed", "Cycled"] as const;
export const WIDTHS = [6, 7, 8] as const;
const FUNCTIONS: Record<string, readonly string[]> = {
  STA: ["", "@Expr"],
  FUNC: ["", "@Expr"],
  COL: ["", "@Expr"],
  STT: ["", "@Stat"],
  EVNT: ["", "@Condition", "@Compare", "=="],
};
const PLACES: Record<number, Partial<Record<Part, number>>> = {
  6: { source: 4, argument: 5 },
  7: { source: 4, argument: 5, condition: 6 },
  8: { trigger: 4, source: 5, function: 6, argument: 7 },
};
const FIRST: Partial<Record<Part, number>> = { code: 0, english: 1, chinese: 2, kind: 3 };

/** Where a row has something, from 0; null where rows of its length have none. */
export function placeOf(row: Row, part: Part): number | null {
  return FIRST[part] ?? PLACES[row.length]?.[part] ?? null;
}

/** A cell as text: what is no text stands as JSON. */
export function cellText(cell: Cell): string {
  if (typeof cell === "string") return cell;
  return cell === undefined || cell === null ? "" : JSON.stringify(cell);
}

/** A part of a row as text; empty where it has none. */
export function partText(row: Row, part: Part): string {
  const place = placeOf(row, part);
  return place === null ? "" : cellText(row[place]);
}

/** The functions that a kind of row can have. */
export function functionsOf(row: Row): readonly string[] {
  return FUNCTIONS[partText(row, "kind")] ?? [""];
}

/** What was typed as a cell: arguments that are arrays or objects become such, all else is text. */
export function readCell(text: string): Cell {
  if (!/^\s*[[{]/.test(text)) return text;
  try {
    const read: unknown = JSON.parse(text);
    return typeof read === "object" && read !== null ? read : text;
  } catch {
    return text; // `{CH-1} * 2` is an expression
  }
}

/** The rows with another cell; the same rows where nothing changes. */
export function withCell(rows: readonly Row[], index: number, place: number, text: string): readonly Row[] {
  const row = rows[index];
  if (!row || cellText(row[place]) === text) return rows;
  return rows.map((each, at) => (at === index ? each.map((cell, n) => (n === place ? readCell(text) : cell)) : each));
}

/** A row in another of the three forms; what the form has no place for is left out. */
export function reshaped(row: Row, width: number): Row {
  if (row.length === width) return row;
  const head = row.slice(0, 4);
  const source = row[placeOf(row, "source") ?? -1] ?? "";
  const isEvent = partText(row, "kind") === "EVNT";
  const own = row[placeOf(row, "argument") ?? -1] ?? "";
  const condition = row.length === 7 ? (row[6] ?? "") : own;
  if (width === 8) return [...head, "Changed", source, isEvent ? "@Condition" : "", isEvent ? condition : own];
  if (width === 7) return isEvent ? [...head, source, "", condition] : [...head, source, own, ""];
  return [...head, source, isEvent ? condition : own];
}

export const newMappingRow = (): Row => ["", "", "", "STA", "Changed", "", "", ""];
export const newControlRow = (): Row => ["", "", "", "OBJ", "", ""];

/** The rows with one put in, taken out or moved. */
export function insertRow(rows: readonly Row[], at: number, row: Row): readonly Row[] {
  return [...rows.slice(0, at), row, ...rows.slice(at)];
}

export function removeRow(rows: readonly Row[], at: number): readonly Row[] {
  return rows.filter((_row, index) => index !== at);
}

export function moveRow(rows: readonly Row[], at: number, by: number): readonly Row[] {
  const row = rows[at];
  const to = at + by;
  return row && to >= 0 && to < rows.length ? insertRow(removeRow(rows, at), to, row) : rows;
}

/** Puts cells that were copied from a table, row by row, in from a place on; rows that lack are made. */
export function pasteCells(rows: readonly Row[], at: number, place: number, text: string, make: () => Row): readonly Row[] {
  const lines = text.replace(/\r\n?/g, "\n").replace(/\n$/, "").split("\n");
  const next = [...rows];
  lines.forEach((line, down) => {
    const row = [...(next[at + down] ?? make())];
    line.split("\t").forEach((cell, right) => {
      if (place + right < row.length) row[place + right] = readCell(cell);
    });
    next[at + down] = row;
  });
  return next;
}

/** What a draft changes, by code. */
export interface RowChange {
  code: string;
  how: "added" | "removed" | "changed" | "moved";
  before: Row | null;
  after: Row | null;
}

/** The differences of two tables, in the order of the later one, removed rows last. */
export function changesOf(before: readonly Row[], after: readonly Row[]): RowChange[] {
  const code = (row: Row): string => cellText(row[0]).trim();
  const old = new Map(before.map((row) => [code(row), row]));
  const now = new Set(after.map(code));
  const kept = before.map(code).filter((each) => now.has(each));
  const changes: RowChange[] = [];
  let place = 0;
  for (const row of after) {
    const was = old.get(code(row));
    if (!was) {
      changes.push({ code: code(row), how: "added", before: null, after: row });
      continue;
    }
    if (JSON.stringify(was) !== JSON.stringify(row)) changes.push({ code: code(row), how: "changed", before: was, after: row });
    else if (kept[place] !== code(row)) changes.push({ code: code(row), how: "moved", before: was, after: row });
    place += 1;
  }
  for (const row of before) if (!now.has(code(row))) changes.push({ code: code(row), how: "removed", before: row, after: null });
  return changes;
}

/** Where the platform found something wrong: row from 0, cell from 0 or null for the row as a whole. */
export interface Wrong {
  row: number;
  place: number | null;
  reason: string;
  told?: Reason | undefined;
}

/** Reads `script: row 3, column 6: character 5: ...`; null where it names no row. */
export function wrongOf({ info, reason }: Pick<GatewayError, "info" | "reason">): Wrong | null {
  const found = /^(?:\w+: )?row (\d+)(?:, column (\d+))?: ([^]*)$/.exec(info);
  if (!found) return null;
  return { row: Number(found[1]) - 1, place: found[2] ? Number(found[2]) - 1 : null, reason: found[3] ?? "", told: withinOf(reason) };
}
