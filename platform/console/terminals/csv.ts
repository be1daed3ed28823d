/** Rows of CSV or of cells that were pasted, by the names of the first line. */

export interface CsvTable {
  rows: Record<string, string>[];
  /** The line on which each row begins, counted from 1. */
  lines: number[];
}

/** Reads CSV (RFC 4180; tabs and semicolons too, if the first line has them). Empty cells are left out. */
export function readCsv(text: string): CsvTable {
  const first = /^[^\r\n]*/.exec(text)?.[0] ?? "";
  const comma = first.includes("\t") ? "\t" : !first.includes(",") && first.includes(";") ? ";" : ",";
  const found: CsvTable = { rows: [], lines: [] };
  let names: string[] | null = null;
  for (const { cells, line } of records(text.replace(/^\ufeff/, ""), comma)) {
    if (cells.every((cell) => !cell.trim())) continue;
    if (!names) names = cells.map((cell) => cell.trim());
    else {
      found.rows.push(Object.fromEntries(names.flatMap((name, i) => (name && cells[i]?.trim() ? [[name, cells[i].trim()]] : []))));
      found.lines.push(line);
    }
  }
  return found;
}

function* records(text: string, comma: string): Generator<{ cells: string[]; line: number }> {
  let cells: string[] = [];
  let cell = "";
  let isQuoted = false;
  let line = 1;
  let began = 1;
  for (let i = 0; i < text.length; i += 1) {
    const letter = text[i] as string;
    if (letter === "\n") line += 1;
    if (isQuoted) {
      if (letter !== '"') cell += letter;
      else if (text[i + 1] === '"') {
        cell += '"';
        i += 1;
      } else isQuoted = false;
    } else if (letter === '"' && !cell) isQuoted = true;
    else if (letter === comma) {
      cells.push(cell);
      cell = "";
    } else if (letter === "\n") {
      yield { cells: [...cells, cell], line: began };
      [cells, cell, began] = [[], "", line];
    } else if (letter !== "\r") cell += letter;
  }
  if (cell || cells.length) yield { cells: [...cells, cell], line: began };
}
