/** What is known of an object's variables, as pages show it. */
import type { Result } from "terrazzo-client";
import type { ChartVariable } from "../charts/chart.tsx";
import { numberText } from "../charts/value-axis.ts";
import { type Language, language } from "../words/words.ts";

export type ObjectVariable = Result<"get_object_variable_list">[number];
export type Value = number | string | boolean | null;

/** An object's terminals, by uid. */
export function terminalsOf(row: Pick<Result<"get_object_item">, "terminal_list">): string[] {
  return Array.isArray(row.terminal_list) ? row.terminal_list.map(String) : [];
}

interface StateNames {
  label_en?: string;
  label_cn?: string;
}

/** The label in the language that is shown, else the other one, else the code. */
export function labelOf(variable: Pick<ObjectVariable, "code" | "label_en" | "label_cn">, shown: Language = language.value): string {
  const [first, second] = shown === "zh" ? [variable.label_cn, variable.label_en] : [variable.label_en, variable.label_cn];
  return first || second || variable.code;
}

/** The name of a value that is a state; null where it has none. */
export function stateOf(variable: Pick<ObjectVariable, "states">, value: Value, shown: Language = language.value): string | null {
  const names = (variable.states as Record<string, StateNames>)[String(value)];
  if (!names) return null;
  const [first, second] = shown === "zh" ? [names.label_cn, names.label_en] : [names.label_en, names.label_cn];
  return first || second || null;
}

/** A value as it is read, without its unit. */
export function shownValue(variable: Pick<ObjectVariable, "states" | "decimals">, value: Value): string {
  if (value === null) return "–";
  const state = stateOf(variable, value);
  if (state !== null) return state;
  return typeof value === "number" ? numberText(value, variable.decimals) : String(value);
}

/** The range that a variable's mapping gives it, `−10 … 60`; empty: none. */
export function rangeOf({ low, high, decimals }: Pick<ObjectVariable, "low" | "high" | "decimals">): string {
  if (low === null && high === null) return "";
  const end = (value: number | null): string => (value === null ? "" : numberText(value, decimals));
  return `${end(low)} … ${end(high)}`.trim();
}

/** What a value means by the limits of its variable: the severity of the worst that it is beyond; empty: nothing. */
export function severityOf(variable: Pick<ObjectVariable, "limits">, value: Value): string {
  if (typeof value !== "number") return "";
  const order = ["info", "warning", "minor", "major", "critical"];
  const beyond = variable.limits.filter(
    ({ above, below }) => (above !== null && above !== undefined && value > above) || (below !== null && below !== undefined && value < below),
  );
  return beyond.map((each) => each.severity ?? "").sort((a, b) => order.indexOf(b) - order.indexOf(a))[0] ?? "";
}

/** As charts know it. */
export function chartVariable(variable: ObjectVariable, key = variable.code): ChartVariable {
  const hasStates = Object.keys(variable.states as object).length > 0;
  return {
    key,
    name: labelOf(variable),
    unit: variable.unit,
    decimals: variable.decimals,
    ...(hasStates ? { stateName: (value: number) => stateOf(variable, value) } : {}),
  };
}
