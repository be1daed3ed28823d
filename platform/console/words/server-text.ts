/** The platform's reasons in the language that is shown: English as they come, Chinese by their code. */
import { effect, signal } from "@preact/signals";
import type { Reason } from "terrazzo-client";
import { language } from "./words.ts";

type Table = Readonly<Record<string, string>>;
type Parameter = Reason["parameters"][string];

const MOST_WITHIN = 8; // reasons in each other
const chinese = signal<Table | null>(null);
const nothing = (): null => null;
const chineseTask = signal<(name: string) => string | null>(nothing);
const chineseBreak = signal<(reason: string) => string | null>(nothing);

/** A reason in Chinese, with the reasons that stand in it; null where the table has no such code, as of a newer platform. */
export function inChinese(table: Table, reason: Reason, depth = 0): string | null {
  const template = Object.hasOwn(table, reason.code) ? table[reason.code] : undefined;
  if (template === undefined || depth > MOST_WITHIN) return null;
  let isWhole = true;
  const text = template.replace(/\{(\w+)\}/g, (_, name: string) => {
    const told = shown(table, reason.parameters[name] ?? "", depth + 1);
    isWhole &&= told !== null;
    return told ?? "";
  });
  if (!isWhole) return null;
  return reason.field ? `${reason.field}：${text}` : text;
}

function shown(table: Table, value: Parameter, depth: number): string | null {
  if (value instanceof Array) {
    const each = value.map((one) => inChinese(table, one, depth));
    return each.includes(null) ? null : each.join("；");
  }
  return typeof value === "object" ? inChinese(table, value as Reason, depth) : String(value);
}

/** A reason of the platform in the language that is shown; what has no code stays as it is. */
export function serverText(info: string, reason?: Reason): string {
  return (language.value === "zh" && chinese.value && reason && inChinese(chinese.value, reason)) || info;
}

/** The reason that stands in one of a place: of `row 3, column 6: ...` what is said of the cell. */
export function withinOf(reason?: Reason): Reason | undefined {
  const within = reason?.parameters["reason"];
  return typeof within === "object" && "code" in within ? within : undefined;
}

/** What a long-lived task or a part of the platform is called, in the language that is shown. */
export function taskText(name: string): string {
  return (language.value === "zh" && chineseTask.value(name)) || name;
}

/** Why a connection ended, in the language that is shown. */
export function breakText(reason: string): string {
  return (language.value === "zh" && chineseBreak.value(reason)) || reason;
}

/** Loads the tables when somebody reads Chinese. */
export function followLanguage(): void {
  effect(() => {
    if (language.value !== "zh" || chinese.peek()) return;
    void Promise.all([import("./server-reasons.ts"), import("./task-names.ts"), import("./breaks.ts")]).then(([{ ALL_REASONS }, { taskInChinese }, { breakInChinese }]) => {
      chineseBreak.value = breakInChinese;
      chineseTask.value = taskInChinese;
      chinese.value = ALL_REASONS;
    });
  });
}
