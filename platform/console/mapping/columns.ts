/** The columns of the two tables: where each cell stands, what can be chosen, what completes it. */
import { type Pair, t } from "../words/words.ts";
import { functionsOf, KINDS, newControlRow, newMappingRow, partText, placeOf, type Part, type Row, TRIGGERS } from "./rows.ts";
import { w } from "./words.ts";

export interface Option {
  value: string;
  text: string;
  /** What it means, said when it is pointed at. */
  about?: string;
}

export interface GridColumn {
  id: string;
  title: Pair;
  /** Of a row's cells, from 0; null: rows of this form have none. */
  place: (row: Row) => number | null;
  /** What can be chosen; without it one types. */
  options?: (row: Row) => Option[];
  /** What completes what is typed. */
  complete?: (row: Row) => "points" | "expression" | "none";
  width: number;
}

const of = (part: Part, title: Pair, width: number, more: Partial<GridColumn> = {}): GridColumn => ({
  id: part,
  title,
  width,
  place: (row) => placeOf(row, part),
  ...more,
});

const isSource = (row: Row): "points" | "none" => (["STA", "EVNT"].includes(partText(row, "kind")) ? "points" : "none");

const isExpression = (row: Row): "expression" | "none" =>
  partText(row, "kind") === "STT" || ["@Compare", "=="].includes(partText(row, "function")) ? "none" : "expression";

export const MAPPING_COLUMNS: readonly GridColumn[] = [
  of("code", w.code, 160),
  of("english", w.english, 160),
  of("chinese", w.chinese, 110),
  of("kind", w.kind, 84, { options: () => KINDS.map((value) => ({ value, text: value, about: t(w[value]) })) }),
  of("trigger", w.trigger, 140, { options: () => TRIGGERS.map((value) => ({ value, text: t(w[value]) })) }),
  of("source", w.source, 215, { complete: isSource }),
  of("function", w.function, 110, { options: (row) => functionsOf(row).map((value) => ({ value, text: value || "–" })) }),
  of("argument", w.argument, 210, { complete: isExpression }),
  of("condition", w.condition, 150, { complete: () => "expression" }),
];

export const CONTROL_COLUMNS: readonly GridColumn[] = [
  { id: "code", title: w.code, width: 150, place: () => 0 },
  { id: "english", title: w.english, width: 190, place: () => 1 },
  { id: "chinese", title: w.chinese, width: 150, place: () => 2 },
  { id: "kind", title: w.kind, width: 180, place: () => 3, options: () => (["OBJ", "APR"] as const).map((value) => ({ value, text: t(w[value]) })) },
  { id: "point", title: w.point, width: 220, place: () => 4, complete: () => "points" },
  { id: "default", title: w.standard, width: 130, place: () => 5 },
];

/** What the two kinds of tables differ in. */
export const TABLES = {
  mapping: { columns: MAPPING_COLUMNS, widths: [6, 7, 8], make: newMappingRow },
  control: { columns: CONTROL_COLUMNS, widths: [6], make: newControlRow },
} as const;
