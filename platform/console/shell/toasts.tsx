/** Short notes of what was done or went wrong; errors stay until they are closed. */
import { signal } from "@preact/signals";
import { w } from "../words/common.ts";
import { explain } from "../words/errors.ts";
import { t } from "../words/words.ts";

interface Note {
  id: number;
  what: string;
  todo: string;
  isBad: boolean;
}

const SHOWN_MS = 5_000;
const MOST = 4;
const notes = signal<Note[]>([]);
let count = 0;

function show(what: string, todo: string, isBad: boolean): void {
  const id = ++count;
  notes.value = [...notes.value, { id, what, todo, isBad }].slice(-MOST);
  if (!isBad) setTimeout(() => close(id), SHOWN_MS);
}

function close(id: number): void {
  notes.value = notes.value.filter((each) => each.id !== id);
}

/** Something was done. */
export function tell(what: string): void {
  show(what, "", false);
}

/** Something went wrong. */
export function tellError(error: unknown): void {
  const told = explain(error);
  show(told.what, told.todo, true);
}

export function Toasts() {
  return (
    <div class="toasts" role="status" aria-live="polite">
      {notes.value.map((note) => (
        <div key={note.id} class={`toast ${note.isBad ? "bad" : ""}`}>
          <div>
            <div class={note.isBad ? "strong" : undefined}>{note.what}</div>
            {note.todo && <div class="dim">{note.todo}</div>}
          </div>
          <button class="plain small" aria-label={t(w.close)} onClick={() => close(note.id)}>
            {"✕"}
          </button>
        </div>
      ))}
    </div>
  );
}
