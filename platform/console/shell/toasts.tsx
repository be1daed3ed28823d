/** Short notes of what was done or went wrong, and how far it is what takes a while; errors, and what else must be seen, stay until they are closed. */
import { signal } from "@preact/signals";
import { w } from "../words/common.ts";
import { explain } from "../words/errors.ts";
import { t } from "../words/words.ts";
import { type Work, works } from "./work.ts";

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

/** The note's number, to close it by. */
export function show(what: string, todo: string, isBad: boolean, stays = isBad): number {
  const id = ++count;
  notes.value = [...notes.value, { id, what, todo, isBad }].slice(-MOST);
  if (!stays) setTimeout(() => close(id), SHOWN_MS);
  return id;
}

/** Whether it was there still. */
export function close(id: number): boolean {
  const before = notes.value;
  notes.value = before.filter((each) => each.id !== id);
  return notes.value.length < before.length;
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
    <div class="toasts">
      {works.value.length > 0 && (
        <section class="works" aria-label={t(w.underWay)}>
          {works.value.map((each) => (
            <Running key={each.id} work={each} />
          ))}
        </section>
      )}
      <div class="notes" role="status" aria-live="polite">
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
    </div>
  );
}

/** How far it is, as a bar and in words. */
export function Progress({ work: { name, done, total, isRows } }: { work: Pick<Work, "name" | "done" | "total" | "isRows"> }) {
  const of = { done: isRows ? done.toLocaleString() : bytesText(done), total: isRows ? total.toLocaleString() : bytesText(total) };
  return (
    <>
      <progress aria-label={name} value={total ? done : undefined} max={total || 1} /> <span class="dim nowrap">{total ? t(isRows ? w.rowsOf : w.bytesOf, of) : ""}</span>
    </>
  );
}

function Running({ work }: { work: Work }) {
  return (
    <div class="toast work">
      <div>
        <bdi class="cut">{work.name.slice(0, 80)}</bdi>
        <Progress work={work} />
      </div>
      <button class="plain small" aria-label={`${t(w.stop)}: ${work.name.slice(0, 80)}`} onClick={work.stop}>
        {"✕"}
      </button>
    </div>
  );
}

/** `3.4 MB`. */
export function bytesText(bytes: number): string {
  if (bytes < 1_000) return `${bytes} B`;
  return bytes < 1e6 ? `${(bytes / 1e3).toFixed(0)} kB` : `${(bytes / 1e6).toFixed(1)} MB`;
}
