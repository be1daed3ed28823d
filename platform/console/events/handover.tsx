/** A shift's handover: what is open, what was done, notes; kept, and good to print. */
import { useState } from "preact/hooks";
import type { Result, RowOf } from "terrazzo-client";
import { Card, Empty, Field, Name, Problem, Tag } from "../parts/basics.tsx";
import { CommandState } from "../commands/state.tsx";
import { SEVERITIES } from "../overview/todo.tsx";
import { call, may, page } from "../shell/api.ts";
import { useDraft } from "../shell/drafts.ts";
import { useLoad, useSend } from "../shell/hooks.ts";
import { link, replaceQuery, route } from "../shell/routes.ts";
import { tell } from "../shell/toasts.tsx";
import { w as common } from "../words/common.ts";
import { language, t } from "../words/words.ts";
import { w } from "./words.ts";

type Shift = Result<"get_shift">;
type Head = RowOf<Result<"get_handover_list">>;

const HOURS = [8, 12, 24, 72];
const SHOWN = 20;

export function HandoverPart() {
  const id = route.value.query.get("id");
  const [turn, setTurn] = useState(0);
  return (
    <div class="stack handover">
      {id ? <Kept key={id} id={id} /> : <Present onKept={() => setTurn((n) => n + 1)} />}
      <Earlier turn={turn} shown={id ?? ""} />
    </div>
  );
}

function Present({ onKept }: { onKept: () => void }) {
  const hours = Number(route.value.query.get("hours")) || 8;
  const { value: notes, set: setNotes, forgetSent } = useDraft("handover", "");
  const found = useLoad((abort) => call("get_shift", { hours }, abort), [hours], 60_000);
  const { send, isBusy, error } = useSend(async () => {
    const { id } = await call("write_handover", { hours, notes });
    forgetSent(notes);
    tell(t(w.handedOver));
    onKept();
    replaceQuery({ id: String(id) });
  });
  if (!found.data) return found.error !== undefined ? <Problem error={found.error} retry={found.reload} /> : <p class="dim">{t(common.loading)}</p>;
  return (
    <>
      <div class="tools">
        <label class="line">
          {t(w.shiftSince)}
          <select value={String(hours)} onChange={(event) => replaceQuery({ hours: event.currentTarget.value })}>
            {HOURS.map((n) => (
              <option key={n} value={String(n)}>
                {t(w.hours, { n })}
              </option>
            ))}
          </select>
        </label>
        <button onClick={() => print()}>{t(w.print)}</button>
      </div>
      <ShiftShown shift={found.data} />
      {may("operator") ? (
        <form class="card form" onSubmit={send}>
          <Field label={t(w.notes)}>
            <textarea rows={5} maxLength={10_000} value={notes} onInput={(event) => setNotes(event.currentTarget.value)} />
          </Field>
          {error !== undefined && <Problem error={error} />}
          <div>
            <button class="primary" disabled={isBusy}>
              {t(w.handOver)}
            </button>
          </div>
        </form>
      ) : (
        <p class="dim">{t(w.handoverNeeds)}</p>
      )}
    </>
  );
}

function Kept({ id }: { id: string }) {
  const found = useLoad((abort) => call("get_handover_item", { id }, abort), [id]);
  if (!found.data) return found.error !== undefined ? <Problem error={found.error} retry={found.reload} /> : <p class="dim">{t(common.loading)}</p>;
  const { username, since, created, notes, shift } = found.data;
  return (
    <>
      <div class="tools">
        <a class="button" href={link(["events", "handover"])}>
          {t(w.present)}
        </a>
        <button onClick={() => print()}>{t(w.print)}</button>
      </div>
      <Card title={t(w.by, { name: username, since, until: created })}>
        <p class="written" dir="auto">
          {notes || "–"}
        </p>
      </Card>
      <ShiftShown shift={shift} />
    </>
  );
}

function ShiftShown({ shift }: { shift: Shift }) {
  return (
    <div class="grid">
      <Card title={t(w.stillOpen)} class="span6">
        <Events title={t(w.openEvents, { n: shift.open_events })} rows={shift.events} total={shift.open_events} />
        <Labels title={t(w.stillOpenLabels, { n: shift.open_labels })} rows={shift.labels} total={shift.open_labels} />
      </Card>
      <Card title={t(w.wasDone)} class="span6">
        <Events title={t(w.handledEvents, { n: shift.handled_events })} rows={shift.handled} total={shift.handled_events} isDone />
        <Labels title={t(w.closedLabels, { n: shift.closed_labels })} rows={shift.closed} total={shift.closed_labels} isDone />
        <h3>{t(w.givenCommands, { n: shift.commands.length })}</h3>
        <ul class="plain-list">
          {shift.commands.map((each) => (
            <li key={each.id}>
              <span class="dim nowrap">{each.queued}</span>{" "}
              <Name text={`${each.command} ${each.value}`} mono /> → <Name text={each.terminal_id} mono /> <CommandState state={each.state} />
            </li>
          ))}
        </ul>
      </Card>
    </div>
  );
}

function named(each: { label_en: string; label_cn: string; code: string }): string {
  return (language.value === "zh" ? each.label_cn : each.label_en) || each.code;
}

/** When an event was handled last, and how: what a shift did is told by when it did it. */
function handling({ acknowledged_at: seen, cleared_at: over }: Shift["events"][number]): string {
  return over && over >= (seen ?? "") ? `${over} ${t(w.cleared)}` : `${seen ?? ""} ${t(w.acknowledged)}`;
}

function Events({ title, rows, total, isDone = false }: { title: string; rows: Shift["events"]; total: number; isDone?: boolean }) {
  return (
    <>
      <h3>{title}</h3>
      <ul class="plain-list">
        {rows.map((each) => {
          const severity = SEVERITIES[each.severity];
          return (
            <li key={each.id}>
              <Tag kind={severity?.kind ?? "info"}>{severity ? t(severity.word) : each.severity}</Tag> <span class="dim nowrap">{isDone ? handling(each) : each.created}</span>{" "}
              <a href={link(["events"], { state: "all", event: String(each.id) })}>
                <Name text={named(each)} />
              </a>{" "}
              <Name text={each.terminal_id} mono />
              {each.comments.slice(-1).map((one) => (
                <div key={one.time} class="dim" dir="auto">
                  {one.username}: {one.text}
                </div>
              ))}
            </li>
          );
        })}
      </ul>
      {total > rows.length && <p class="dim">{t(w.firstOf, { n: rows.length })}</p>}
    </>
  );
}

function Labels({ title, rows, total, isDone = false }: { title: string; rows: Shift["labels"]; total: number; isDone?: boolean }) {
  return (
    <>
      <h3>{title}</h3>
      <ul class="plain-list">
        {rows.map((each) => (
          <li key={each.id}>
            <span class="dim nowrap">{isDone ? each.close_at : each.opened_at}</span> <Name text={named(each)} /> <Name text={each.terminal_id} mono />
          </li>
        ))}
      </ul>
      {total > rows.length && <p class="dim">{t(w.firstOf, { n: rows.length })}</p>}
    </>
  );
}

function Earlier({ turn, shown }: { turn: number; shown: string }) {
  const found = useLoad((abort) => page("get_handover_list", { page_size: SHOWN }, abort), [turn]);
  const rows: Head[] = found.data?.rows ?? [];
  if (found.error !== undefined) return <Problem error={found.error} retry={found.reload} />;
  if (found.data && !rows.length) return <Empty title={t(w.noEarlier)}>{t(w.noEarlierDo)}</Empty>;
  return (
    <Card title={t(w.earlier)} class="not-printed">
      <ul class="plain-list">
        {rows.map((each) => (
          <li key={each.id}>
            <a href={link(["events", "handover"], { id: String(each.id) })} aria-current={String(each.id) === shown ? "true" : undefined}>
              <Name text={t(w.by, { name: each.username, since: each.since, until: each.created })} />
            </a>{" "}
            <span class="dim">
              <Name text={each.notes.slice(0, 120)} />
            </span>
          </li>
        ))}
      </ul>
    </Card>
  );
}
