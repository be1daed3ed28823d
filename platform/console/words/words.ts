/** Words in both languages, side by side: what is missing in one does not compile. */
import { signal } from "@preact/signals";

export type Pair = readonly [english: string, chinese: string];
export type Language = "en" | "zh";
export type Values = Readonly<Record<string, string | number>>;

const PLURAL = new Intl.PluralRules("en");

/** The language that is shown; pages that show words follow it. */
export const language = signal<Language>("en");

/** Declares the words of a page. */
export function words<T extends Record<string, Pair>>(pairs: T): T {
  return pairs;
}

/**
 * A text in the language that is shown. `{name}` is a value; `{n|terminal|terminals}` one of two words, by a number.
 */
export function t(pair: Pair, values: Values = {}): string {
  return fill(language.value === "zh" ? pair[1] : pair[0], values, language.value);
}

export function fill(text: string, values: Values, shown: Language): string {
  return text.replace(/\{(\w+)(?:\|([^|}]*)\|([^}]*))?\}/g, (whole, name: string, one?: string, many?: string) => {
    const value = values[name];
    if (value === undefined) return whole;
    if (one !== undefined) return PLURAL.select(Number(value)) === "one" ? one : (many ?? "");
    return typeof value === "number" ? value.toLocaleString(shown === "zh" ? "zh-CN" : "en") : value;
  });
}
