/** The platform's reasons in the language that is shown: English as they come, Chinese from the table of them. */
import { effect, signal } from "@preact/signals";
import { language } from "./words.ts";

type Pairs = readonly (readonly [string, string])[];

interface Template {
  /** The English text around what differs. */
  parts: string[];
  chinese: string;
}

const MOST_CHARS = 2_000;
const MOST_SPLITS = 20;
const templates = signal<readonly Template[] | null>(null);

/** Reads a table; what has more text of its own is tried before what has less. */
export function templatesOf(pairs: Pairs): Template[] {
  const made = pairs.map(([english, chinese]) => ({ parts: english.split(/\{\d\}/), chinese }));
  const weight = (each: Template) => each.parts.join("").length;
  return made.sort((one, other) => weight(other) - weight(one));
}

/** The values of a text that a template is of, each the shortest; null: it is of another. */
export function valuesOf(template: Template, text: string): string[] | null {
  const [first = "", ...rest] = template.parts;
  const last = rest.pop();
  if (last === undefined) return text === first ? [] : null;
  if (!text.startsWith(first) || !text.endsWith(last) || text.length < first.length + last.length) return null;
  const values: string[] = [];
  let at = first.length;
  const end = text.length - last.length;
  for (const part of rest) {
    const next = text.indexOf(part, at);
    if (next < 0 || next + part.length > end) return null;
    values.push(text.slice(at, next));
    at = next + part.length;
  }
  return [...values, text.slice(at, end)];
}

/** A whole reason in Chinese; null where the table has none of its kind. */
function worded(table: readonly Template[], text: string): string | null {
  for (const each of table) {
    const values = valuesOf(each, text);
    if (values) return each.chinese.replace(/\{(\d)\}/g, (_, n: string) => values[Number(n)] ?? "");
  }
  return null;
}

/** `field: reason; field: reason` in Chinese; what is not in the table stays as it is. */
export function inChinese(table: readonly Template[], info: string): string {
  if (info.length > MOST_CHARS) return info;
  const whole = worded(exact(table, info), info);
  if (whole !== null) return whole;
  const pieces = info.split("; ");
  const found: string[] = [];
  let from = 0;
  while (from < pieces.length) {
    let to = Math.min(pieces.length, from + MOST_SPLITS);
    let told: string | null = null;
    for (; to > from && told === null; to -= 1) told = reasonOfField(table, pieces.slice(from, to).join("; "));
    if (told === null) {
      found.push(pieces[from] ?? "");
      from += 1;
    } else {
      found.push(told);
      from = to + 1;
    }
  }
  return found.join("；");
}

/** Templates whose text begins as a reason does that has no field before it; `{0}: ...` would take any field for a value. */
function exact(table: readonly Template[], text: string): readonly Template[] {
  return table.filter((each) => each.parts[0] !== "" && text.startsWith(each.parts[0] as string));
}

function reasonOfField(table: readonly Template[], text: string): string | null {
  const whole = worded(exact(table, text), text);
  if (whole !== null) return whole;
  const field = /^([\w.[\]-]{1,128}): /.exec(text);
  if (!field) return worded(table, text);
  const reason = worded(table, text.slice(field[0].length));
  return reason === null ? worded(table, text) : `${field[1]}：${reason}`;
}

/** A reason of the platform in the language that is shown. */
export function serverText(info: string): string {
  return language.value === "zh" && templates.value ? inChinese(templates.value, info) : info;
}

/** Loads the table when somebody reads Chinese. */
export function followLanguage(): void {
  effect(() => {
    if (language.value !== "zh" || templates.peek()) return;
    void import("./server-reasons.ts").then(({ REASONS }) => (templates.value = templatesOf(REASONS)));
  });
}
