/** Tables as files: JSON as the API has it, and comma-separated values as spreadsheets do. */
import { bareText, guardFormula, quoted } from "../parts/csv.ts";
import { type Cell, cellText, readCell, type Row } from "./rows.ts";

export const MOST_BYTES = 4_000_000;
export const MOST_ROWS = 1_000;

/** Lines of comma-separated values; cells that are arrays or objects stand as JSON, none is a formula. */
export function writeCsv(rows: readonly Row[]): string {
  const quote = (cell: Cell): string => quoted(guardFormula(cellText(cell)));
  return `\ufeff${rows.map((row) => row.map(quote).join(",")).join("\r\n")}\r\n`;
}

/** Reads comma-separated values, quoted ones over several lines too. Throws where a quote is left open. */
export function readCsv(text: string): Row[] {
  const rows: Row[] = [];
  let row: string[] = [];
  let cell = "";
  let isQuoted = false;
  const endRow = (): void => {
    row.push(cell);
    if (row.length > 1 || cell !== "") rows.push(row.map((each) => readCell(bareText(each))));
    row = [];
    cell = "";
  };
  const all = text.replace(/^\ufeff/, "");
  for (let at = 0; at < all.length; at++) {
    const sign = all[at] as string;
    if (isQuoted) {
      if (sign !== '"') cell += sign;
      else if (all[at + 1] === '"') cell += all[++at];
      else isQuoted = false;
    } else if (sign === '"' && cell === "") isQuoted = true;
    else if (sign === ",") {
      row.push(cell);
      cell = "";
    } else if (sign === "\n" || sign === "\r") {
      if (sign === "\r" && all[at + 1] === "\n") at++;
      endRow();
    } else cell += sign;
  }
  if (isQuoted) throw new BadFile("quote", rows.length + 1);
  if (row.length || cell !== "") endRow();
  return rows;
}

/** Why a file is no table; `row` from 1, 0 for the file as a whole. */
export class BadFile extends Error {
  readonly why: "json" | "quote" | "rows" | "width" | "large";
  readonly row: number;

  constructor(why: BadFile["why"], row = 0) {
    super(why);
    this.why = why;
    this.row = row;
  }
}

/** The rows of a file: an array of rows, a record with a `script`, or comma-separated values. Throws BadFile. */
export function readTable(text: string, widths: readonly number[]): Row[] {
  if (text.length > MOST_BYTES) throw new BadFile("large");
  const rows = /^\ufeff?\s*[[{]/.test(text) ? fromJson(text.replace(/^\ufeff/, "")) : readCsv(text);
  if (rows.length > MOST_ROWS) throw new BadFile("large");
  rows.forEach((row, index) => {
    if (!Array.isArray(row) || !widths.includes(row.length)) throw new BadFile("width", index + 1);
  });
  return rows as Row[];
}

function fromJson(text: string): unknown[] {
  let read: unknown;
  try {
    read = JSON.parse(text);
  } catch {
    throw new BadFile("json");
  }
  const rows = Array.isArray(read) ? read : (read as { script?: unknown }).script;
  if (!Array.isArray(rows)) throw new BadFile("rows");
  return rows;
}
