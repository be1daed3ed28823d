/** The instant that is pointed at: all charts of a page show their values then. */
import { signal } from "@preact/signals";

/** Milliseconds since 1970; null: nothing is pointed at. */
export const cursor = signal<number | null>(null);
