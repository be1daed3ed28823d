/** The objects that use a table, and what their last messages make of a draft. */
import type { Result, RowOf } from "terrazzo-client";
import { call, page } from "../shell/api.ts";
import type { Loaded } from "../shell/hooks.ts";
import { useLoad, useRested } from "../shell/hooks.ts";
import type { TableKind } from "./editing.ts";
import type { Row } from "./rows.ts";

export type UsingObject = RowOf<Result<"get_object_list">>;
export type Checked = Result<"check_mapping">;

export interface Using {
  rows: UsingObject[];
  total: number;
}

const MOST_OBJECTS = 200;
const MOST_TERMINALS = 100;
const LATEST = 20;
const REST_MS = 400;
const EVERY_MS = 30_000;

/** The objects of the company that name a table. */
export function useUsing(kind: TableKind, id: number): Loaded<Using> {
  const field = kind === "mapping" ? "mapping_id" : "control_id";
  return useLoad(
    (abort) => page("get_object_list", { where_and: [[field, "=", id]], order_by: ["name", "asc"], page_size: MOST_OBJECTS }, abort),
    [kind, id],
  );
}

export function terminalsOf(object: UsingObject | undefined): string[] {
  return Array.isArray(object?.terminal_list) ? object.terminal_list.map(String).slice(0, MOST_TERMINALS) : [];
}

/** What the last messages of an object's terminals make of rows; all that is wrong with these stands in `problems`. */
export function check(rows: readonly Row[], terminals: readonly string[], abort?: AbortSignal): Promise<Checked> {
  const messages = terminals.length ? { terminal_list: [...terminals], latest: LATEST } : {};
  return call("check_mapping", { script: [...rows], all_problems: 1, ...messages }, abort);
}

/** The same for a draft, when typing rests, and again from time to time. */
export function useChecked(rows: readonly Row[], terminals: readonly string[], isWanted: boolean): Loaded<Checked | null> {
  const rested = useRested(rows, REST_MS);
  return useLoad((abort) => (isWanted ? check(rested, terminals, abort) : Promise.resolve(null)), [rested, terminals.join("\n"), isWanted], EVERY_MS);
}
