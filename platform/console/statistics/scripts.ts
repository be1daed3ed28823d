/** The kinds of scripts, and the actions of each. */
import type { ChartSource } from "../charts/data.ts";
import type { Curve } from "../charts/curve.ts";
import type { GatewayError, Reason } from "terrazzo-client";
import { call, page, session } from "../shell/api.ts";
import { clock } from "../shell/clock.ts";
import { withinOf } from "../words/server-text.ts";
import type { Pair } from "../words/words.ts";
import { w } from "./words.ts";

/** A retainer keeps labels open: it stands with them, and has no curves. */
export type Kind = "statistics" | "calculate" | "balance" | "retainer";

/** Those that have results, which are looked at beside each other. */
export const KINDS = [
  { id: "statistics", title: w.statistics },
  { id: "calculate", title: w.calculate },
  { id: "balance", title: w.balance },
] as const satisfies readonly { id: Kind; title: Pair }[];

/** What the kinds of records have in common. */
export interface Script {
  id: number;
  uid: string;
  name: string;
  description: string;
  is_active: number;
  object_list: string[];
  /** Rows of a script; empty for balances. */
  rows: string[][];
  target: string;
  inputs: string[];
  windowS: number;
}

type Raw = Record<string, unknown>;

function script(raw: Raw): Script {
  const texts = (value: unknown): string[] => (Array.isArray(value) ? value.map(String) : []);
  return {
    id: Number(raw["id"]),
    uid: String(raw["uid"]),
    name: String(raw["name"]),
    description: String(raw["description"] ?? ""),
    is_active: Number(raw["is_active"]),
    object_list: texts(raw["object_list"]),
    rows: Array.isArray(raw["script"]) ? (raw["script"] as unknown[]).map(texts) : [],
    target: String(raw["target_code"] ?? ""),
    inputs: texts(raw["input_codes"]),
    windowS: Number(raw["window"] ?? 0),
  };
}

const LISTS = { statistics: "get_statistics_script_list", calculate: "get_calculate_script_list", balance: "get_balance_list", retainer: "get_retainer_list" } as const;
const ITEMS = { statistics: "get_statistics_item", calculate: "get_calculate_item", balance: "get_balance_item", retainer: "get_retainer_item" } as const;
const STARTS = { statistics: "start_statistics", calculate: "start_calculate", balance: "start_balance", retainer: "start_retainer" } as const;
const STOPS = { statistics: "stop_statistics", calculate: "stop_calculate", balance: "stop_balance", retainer: "stop_retainer" } as const;
const DELETES = { statistics: "delete_statistics", calculate: "delete_calculate", balance: "delete_balance", retainer: "delete_retainer" } as const;
const RESULTS = { statistics: "get_statistics_list", calculate: "get_calculate_list" } as const;

export async function scripts(kind: Kind, index: number, size: number, abort: AbortSignal): Promise<{ rows: Script[]; total: number }> {
  const found = await page(LISTS[kind], { page_index: index, page_size: size, order_by: ["name", "asc"] }, abort);
  return { rows: found.rows.map((each) => script(each as Raw)), total: found.total };
}

export async function item(kind: Kind, uid: string, abort: AbortSignal): Promise<Script> {
  return script((await call(ITEMS[kind], { uid }, abort)) as Raw);
}

export async function setActive(kind: Kind, uid: string, isActive: boolean): Promise<void> {
  await call((isActive ? STARTS : STOPS)[kind], { uid });
}

export async function remove(kind: Kind, uid: string): Promise<void> {
  await call(DELETES[kind], { uid });
}

const RETAINER_COLUMNS = [
  { id: "code", title: w.variable },
  { id: "label_en", title: w.labelEn },
  { id: "label_cn", title: w.labelCn },
  { id: "open", title: w.openValue },
  { id: "close", title: w.closeValue },
];

/** The cells of a row, in their order; a balance has none. */
export function columnsOf(kind: Kind): readonly { id: string; title: Pair }[] {
  if (kind === "retainer") return RETAINER_COLUMNS;
  const name = { id: "name", title: w.result };
  if (kind === "statistics") return [name, { id: "function", title: w.functionTitle }, { id: "code", title: w.variable }];
  return kind === "calculate" ? [name, { id: "expression", title: w.expression }] : [];
}

export function newRow(kind: Kind): string[] {
  return kind === "statistics" ? ["", "avg", ""] : columnsOf(kind).map(() => "");
}

export function newScript(kind: Kind): Script {
  const rows = kind === "balance" ? [] : [newRow(kind)];
  return { id: 0, uid: "", name: "", description: "", is_active: 0, object_list: [], rows, target: "", inputs: [], windowS: 86_400 };
}

/** Where the platform found something wrong: row and place from 0, place null for the row as a whole. */
export interface Wrong {
  row: number;
  place: number | null;
  reason: string;
  told?: Reason | undefined;
}

/** Reads `script: row 2, column 3: expected a code`; null where it names no row. */
export function wrongOf({ info, reason }: Pick<GatewayError, "info" | "reason">): Wrong | null {
  const found = /^script: row (\d+)(?:, column (\d+))?: ([^]*)$/.exec(info);
  return found && { row: Number(found[1]) - 1, place: found[2] ? Number(found[2]) - 1 : null, reason: found[3] ?? "", told: withinOf(reason) };
}

/** Writes a script, as a new one where it has no uid yet; its uid. */
export async function save(kind: Kind, script: Script): Promise<string> {
  const who = session.value?.id ?? 0;
  const common = { name: script.name, object_list: script.object_list, created_by: who, last_modified_by: who, is_available: 1 };
  const rows = { ...common, script: script.rows };
  const balance = { ...common, target_code: script.target, input_codes: script.inputs.filter(Boolean), window: script.windowS };
  const { uid } = script;
  if (!uid) {
    if (kind === "statistics") return (await call("create_statistics", rows)).uid;
    if (kind === "retainer") return (await call("create_retainer", rows)).uid;
    return kind === "calculate" ? (await call("create_calculate", rows)).uid : (await call("create_balance", balance)).uid;
  }
  if (kind === "statistics") await call("update_statistics", { uid, ...rows });
  else if (kind === "retainer") await call("update_retainer", { uid, ...rows });
  else if (kind === "calculate") await call("update_calculate", { uid, ...rows });
  else await call("update_balance", { uid, ...balance });
  return uid;
}

const PAGE = 1_000;
const MOST_PAGES = 10;

/** Curves of a script's variables on one object, a point each period, at its beginning. */
export function resultsOf(kind: "statistics" | "calculate", uid: string, objectId: string, type: number): ChartSource {
  return {
    load: async (keys, range, signal) => {
      const curves: Record<string, Curve> = Object.fromEntries(keys.map((key) => [key, { times: [] as number[], values: [] as number[] }]));
      const where = [
        ["object_id", "=", objectId],
        ["start_time", ">=", clock.format(range.from)],
        ["start_time", "<=", clock.format(range.to)],
      ];
      for (let index = 1; index <= MOST_PAGES; index += 1) {
        const found = await page(RESULTS[kind], { script_uid: uid, type, where_and: where, order_by: ["start_time", "asc"], page_index: index, page_size: PAGE }, signal);
        for (const each of found.rows) {
          const curve = curves[each.var_name] as { times: number[]; values: number[] } | undefined;
          const value = each.data === "" ? NaN : Number(each.data);
          if (!curve || Number.isNaN(value)) continue;
          curve.times.push(clock.parse(each.start_time));
          curve.values.push(value);
        }
        if (found.rows.length < PAGE) break;
      }
      return curves;
    },
  };
}
