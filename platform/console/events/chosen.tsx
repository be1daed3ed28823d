/** What is done with many events at once: one request, all of them or none. */
import { useState } from "preact/hooks";
import { FormDialog, type Values } from "../parts/forms.tsx";
import { call } from "../shell/api.ts";
import { clock } from "../shell/clock.ts";
import { tell } from "../shell/toasts.tsx";
import { t } from "../words/words.ts";
import { w } from "./words.ts";

/** Events that one request takes. */
export const MOST_CHOSEN = 500;
const HOUR_MS = 3_600_000;
const SHELVED = [1, 4, 8, 24, 72, 168] as const;

/** How long events may be shelved, in hours; 0 takes them off the shelf. */
export function shelveOptions(): (readonly [hours: string, text: string])[] {
  return [...SHELVED.map((hours) => [String(hours), t(w.forHours, { n: hours })] as const), ["0", t(w.unshelve)]];
}

/** Shelves events from now on, or takes them off the shelf. */
export async function shelve(ids: readonly number[], hours: number, comment: string): Promise<void> {
  await call("shelve_events", { ids: [...ids], comment, ...(hours ? { until: clock.format(clock.now.value + hours * HOUR_MS) } : {}) });
}

type Doing = "acknowledge_events" | "clear_events" | "comment_events" | "shelve_events";

const TITLES = { acknowledge_events: w.acknowledge, clear_events: w.clear, comment_events: w.addComment, shelve_events: w.shelve };

export function Chosen({ ids, onDone, onNone }: { ids: readonly number[]; onDone: () => void; onNone: () => void }) {
  const [doing, setDoing] = useState<Doing | null>(null);
  if (!ids.length) return null;
  const submit = async (values: Values) => {
    if (doing) await handle(doing, [...ids], values);
    tell(t(w.done, { n: ids.length }));
    setDoing(null);
    onDone();
  };
  return (
    <div class="bulk" role="toolbar" aria-label={t(w.chosen, { n: ids.length })}>
      <span>{t(w.chosen, { n: ids.length })}</span>
      {(Object.keys(TITLES) as Doing[]).map((each) => (
        <button key={each} onClick={() => setDoing(each)}>
          {t(TITLES[each])}
        </button>
      ))}
      <button class="plain" onClick={onNone}>
        {t(w.chooseNone)}
      </button>
      {doing && (
        <FormDialog
          draft={`events ${doing}`}
          title={`${t(TITLES[doing])}: ${t(w.count, { n: ids.length })}`}
          submit={t(TITLES[doing])}
          fields={fieldsOf(doing)}
          onSubmit={submit}
          onClose={() => setDoing(null)}
        />
      )}
    </div>
  );
}

function fieldsOf(doing: Doing) {
  const comment = { name: "comment", label: t(w.comment), most: 1_000, isRequired: doing === "comment_events" };
  if (doing !== "shelve_events") return [comment];
  return [{ name: "hours", label: t(w.shelveFor), kind: "choice" as const, options: shelveOptions(), hint: t(w.shelveHint) }, comment];
}

async function handle(doing: Doing, ids: number[], values: Values): Promise<void> {
  const comment = values["comment"] ?? "";
  if (doing === "shelve_events") await shelve(ids, Number(values["hours"]), comment);
  else await call(doing, { ids, comment });
}
