/** One event: what it was, who did what about it, and doing something. */
import { useState } from "preact/hooks";
import { Age, Dialog, Field, Name, Problem } from "../parts/basics.tsx";
import { call, may } from "../shell/api.ts";
import { clock } from "../shell/clock.ts";
import { useDraft } from "../shell/drafts.ts";
import { useLoad } from "../shell/hooks.ts";
import { link } from "../shell/routes.ts";
import { w as common } from "../words/common.ts";
import { t } from "../words/words.ts";
import { shelve, shelveOptions } from "./chosen.tsx";
import { nameOf, State } from "./events.tsx";
import { w } from "./words.ts";

type Handling = "acknowledge_event" | "clear_event" | "comment_event";

export function EventDialog({ id, onClose, onChange }: { id: number; onClose: () => void; onChange: () => void }) {
  const { data, error, reload } = useLoad((abort) => call("get_event_item", { id }, abort), [id]);
  const { value: typed, set, forgetSent } = useDraft(`event ${id}`, { comment: "", hours: "4" });
  const { comment, hours } = typed;
  const [failure, setFailure] = useState<unknown>();
  const [isBusy, setBusy] = useState(false);
  const take = async (work: () => Promise<unknown>) => {
    setFailure(undefined);
    setBusy(true);
    try {
      await work();
      forgetSent(typed);
      reload();
      onChange();
    } catch (found) {
      setFailure(found);
    } finally {
      setBusy(false);
    }
  };
  const handle = (action: Handling) => take(() => call(action, { id, comment }));
  const object = useLoad((abort) => (data?.object_id ? call("get_object_item", { id: data.object_id }, abort) : Promise.resolve(null)), [data?.object_id]);
  const isShelved = !!data?.shelved_until && clock.parse(data.shelved_until) > clock.now.value;
  return (
    <Dialog title={data ? nameOf(data).slice(0, 120) : t(common.loading)} onClose={onClose}>
      {!!error && <Problem error={error} retry={reload} />}
      {data && (
        <div class="form">
          <dl class="facts">
            <dt>{t(common.state)}</dt>
            <dd>
              <State row={data} /> {isShelved && <span class="dim">{t(w.shelvedUntil, { until: data.shelved_until ?? "" })}</span>}
            </dd>
            <dt>{t(w.value)}</dt>
            <dd>
              <Name text={data.value} />
            </dd>
            <dt>{t(w.condition)}</dt>
            <dd class="mono">
              <Name text={data.extension_key} />
            </dd>
            <dt>{t(w.when)}</dt>
            <dd>
              {`${data.created.slice(0, 19)} ${clock.offset.value}`} (<Age at={data.created} />)
            </dd>
            {data.object_id && (
              <>
                <dt>{t(common.object)}</dt>
                <dd>
                  <a href={link(["objects", data.object_id])}>
                    <Name text={object.data?.name ?? data.object_id} />
                  </a>
                </dd>
              </>
            )}
            <dt>{t(common.terminal)}</dt>
            <dd>
              <a href={link(["terminals", data.terminal_id])}>
                <Name text={data.terminal_id} mono />
              </a>
            </dd>
          </dl>
          {data.comments.length > 0 && <h3>{t(w.comments)}</h3>}
          <ul class="messages">
            {data.comments.map((each, i) => (
              <li key={i}>
                <span class="dim">{t(w.byWhom, { who: each.username, when: each.time })}</span>
                <span>
                  <Name text={each.text} />
                </span>
              </li>
            ))}
          </ul>
          {may("admin") && (
            <p>
              <a href={link(["rules"], { new: "event", code: data.code, object: data.object_id, severity: data.severity })}>{t(w.makeRule)}</a>
            </p>
          )}
          {may("operator") && (
            <>
              <Field label={t(w.comment)} maxLength={1000} value={comment} onInput={(event) => set({ ...typed, comment: event.currentTarget.value })} />
              {failure !== undefined && <Problem error={failure} />}
              {data.state !== "cleared" && (
                <div class="line">
                  <select aria-label={t(w.shelveFor)} title={t(w.shelveHint)} value={hours} onChange={(event) => set({ ...typed, hours: event.currentTarget.value })}>
                    {shelveOptions().map(([value, text]) => (
                      <option key={value} value={value}>
                        {text}
                      </option>
                    ))}
                  </select>
                  <button disabled={isBusy} onClick={() => void take(() => shelve([id], Number(hours), comment))}>
                    {t(hours === "0" ? w.unshelve : w.shelve)}
                  </button>
                </div>
              )}
              <footer>
                <button disabled={!comment || isBusy} onClick={() => void handle("comment_event")}>
                  {t(w.addComment)}
                </button>
                {data.state !== "cleared" && <button disabled={isBusy} onClick={() => void handle("clear_event")}>{t(w.clear)}</button>}
                {data.state === "raised" && (
                  <button class="primary" disabled={isBusy} onClick={() => void handle("acknowledge_event")}>
                    {t(w.acknowledge)}
                  </button>
                )}
              </footer>
            </>
          )}
        </div>
      )}
    </Dialog>
  );
}
