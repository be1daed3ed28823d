/** The browser tab's title: how many things need a person, and the page that is shown. */
import { effect, signal } from "@preact/signals";

const MOST_CHARS = 80;

/** What the page is called. */
export const pageTitle = signal("");
/** How many things need a person; null: not known yet. */
export const needed = signal<number | null>(null);

/** Keeps the title from now on. */
export function followTitle(): void {
  effect(() => {
    if (pageTitle.value) document.title = `${needed.value ? `(${needed.value}) ` : ""}${pageTitle.value.slice(0, MOST_CHARS)} · Terrazzo`;
  });
}
