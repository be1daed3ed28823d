/** Theme and language: as the system has them, unless somebody chose; kept in this browser. */
import { effect, signal } from "@preact/signals";
import { followLanguage } from "../words/server-text.ts";
import { type Language, language } from "../words/words.ts";

export type Theme = "system" | "light" | "dark";

export const theme = signal<Theme>("system");
/** Whether one's account, with these and the password, is open. */
export const isAccountOpen = signal(false);
/** What the theme comes to; charts draw themselves anew with it. */
export const shownTheme = signal<"light" | "dark">("light");

const KEYS = { theme: "terrazzo-theme", language: "terrazzo-language" };

function kept(key: string): string {
  try {
    return localStorage.getItem(key) ?? "";
  } catch {
    return ""; // a browser that keeps nothing
  }
}

function keep(key: string, value: string): void {
  try {
    localStorage.setItem(key, value);
  } catch {
    // a browser that keeps nothing
  }
}

/** Reads what was chosen, and follows the system where nothing was. */
export function usePreferences(): void {
  const found = kept(KEYS.theme);
  theme.value = found === "light" || found === "dark" ? found : "system";
  const named = kept(KEYS.language);
  language.value = named === "en" || named === "zh" ? named : navigator.language.startsWith("zh") ? "zh" : "en";
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const show = () => {
    shownTheme.value = theme.value === "system" ? (dark.matches ? "dark" : "light") : theme.value;
  };
  dark.addEventListener("change", show);
  effect(show);
  effect(() => void (document.documentElement.dataset["theme"] = shownTheme.value));
  followLanguage();
  effect(() => {
    document.documentElement.lang = language.value === "zh" ? "zh-CN" : "en";
  });
}

export function chooseTheme(chosen: Theme): void {
  theme.value = chosen;
  keep(KEYS.theme, chosen);
}

export function chooseLanguage(chosen: Language): void {
  language.value = chosen;
  keep(KEYS.language, chosen);
}
