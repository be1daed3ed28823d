/** Cells of CSV files; texts that a spreadsheet would calculate begin with an apostrophe, as in the server's files. */

// the last four are the wide forms of = + - @
const FORMULA = /^'*[=+\-@\t\r\n\uff1d\uff0b\uff0d\uff20]/;
const GUARDED = /^'+[=+\-@\t\r\n\uff1d\uff0b\uff0d\uff20]/;
const NUMBER = /^[+-]?\d+(\.\d+)?(e[+-]?\d+)?$/i;

/** The text as a cell that no spreadsheet calculates. */
export function guardFormula(text: string): string {
  return FORMULA.test(text) ? `'${text}` : text;
}

/** The text that `guardFormula` was given; other cells as they are. */
export function bareText(cell: string): string {
  return GUARDED.test(cell) ? cell.slice(1) : cell;
}

/** A cell, quoted where it has to be; numbers stay numbers, also those that stand in a text. */
export function csvCell(value: unknown): string {
  const text = value === null || value === undefined ? "" : typeof value === "object" ? JSON.stringify(value) : String(value);
  return quoted(NUMBER.test(text) ? text : guardFormula(text));
}

/** A cell as it is, in quotes where it has to be. */
export function quoted(text: string): string {
  return /[",\r\n]|^\s|\s$/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}
