/** Makes the past of objects again by their mapping; it goes on though nobody looks. */
import { useState } from "preact/hooks";
import type { Result, RowOf } from "terrazzo-client";
import { Card, Field, Name, Problem, Tag } from "../parts/basics.tsx";
import { call, page } from "../shell/api.ts";
import { clock } from "../shell/clock.ts";
import { useDraft } from "../shell/drafts.ts";
import { useLoad } from "../shell/hooks.ts";
import { tell, tellError } from "../shell/toasts.tsx";
import { w as common } from "../words/common.ts";
import { keptReason } from "../words/kept-reasons.ts";
import { language, t } from "../words/words.ts";
import type { Using } from "./using.ts";
import { w } from "./words.ts";

type ReplayRow = RowOf<Result<"get_replay_list">>;

const DAY_MS = 86_400_000;
const EVERY_MS = 2_000;
const SHOWN = 30;
const STATES = { waiting: w.waiting, running: w.running, done: w.done, failed: w.failed, cancelled: w.cancelled } as const;
const MEANING = { waiting: "", running: "info", done: "good", failed: "bad", cancelled: "warn" } as const;

export function Replay({ uid, using }: { uid: string; using: Using | undefined }) {
  const found = useLoad((abort) => page("get_replay_list", { page_size: 200 }, abort), [], EVERY_MS);
  const ids = new Set(using?.rows.map((each) => String(each.id)));
  const mine = (found.data?.rows ?? []).filter((each) => ids.has(each.object_id)).slice(0, SHOWN);
  return (
    <div class="grid">
      <Card class="span4" title={t(w.history)}>
        {using && <Start name={uid} using={using} onStarted={found.reload} />}
      </Card>
      <Card class="span8" title={t(w.replayLast)}>
        {found.error !== undefined && <Problem error={found.error} retry={found.reload} />}
        {!found.data && found.error === undefined && <p class="dim" aria-busy="true">{t(common.loading)}</p>}
        {found.data && !mine.length && <p class="dim">{t(w.replayNone)}</p>}
        {mine.length > 0 && <Replays rows={mine} using={using} onChanged={found.reload} />}
      </Card>
    </div>
  );
}

function Start({ name, using, onStarted }: { name: string; using: Using; onStarted: () => void }) {
  const [first] = useState(() => ({ from: clock.ago(DAY_MS).slice(0, 19), to: "" }));
  const { value: typed, set, forgetSent } = useDraft(`replay ${name}`, first);
  const { from, to } = typed;
  const [left, setLeft] = useState<ReadonlySet<string>>(new Set());
  const [isBusy, setBusy] = useState(false);
  const chosen = using.rows.filter((each) => !left.has(String(each.id)));
  const start = async (dry_run: number): Promise<void> => {
    setBusy(true);
    let started = 0;
    try {
      for (const each of chosen) {
        await call("replay", { object_id: each.id, start_time: from, ...(to ? { end_time: to } : {}), dry_run });
        started += 1;
      }
    } catch (error) {
      tellError(error);
    }
    if (started) tell(t(w.replayStarted, { n: started }));
    if (started === chosen.length && !dry_run) forgetSent(typed);
    setBusy(false);
    onStarted();
  };
  const toggle = (id: string): void => setLeft(new Set(left.has(id) ? [...left].filter((each) => each !== id) : [...left, id]));
  return (
    <div class="form">
      <p class="dim">{t(w.replayDo)}</p>
      <Field label={`${t(w.replayFrom)} (${clock.offset.value})`} value={from} maxLength={32} onInput={(event) => set({ ...typed, from: event.currentTarget.value })} />
      <Field label={t(w.replayTo)} value={to} maxLength={32} onInput={(event) => set({ ...typed, to: event.currentTarget.value })} />
      <fieldset class="choose">
        <legend class="dim">{t(w.replayOf)}</legend>
        {!using.rows.length && <p class="dim">{t(w.noObjects)}</p>}
        {using.rows.map((each) => (
          <label key={each.id} class="line">
            <input type="checkbox" checked={!left.has(String(each.id))} onChange={() => toggle(String(each.id))} />
            <Name text={each.name} />
          </label>
        ))}
      </fieldset>
      <span class="line">
        <button class="primary" disabled={isBusy || !chosen.length || !from.trim()} onClick={() => void start(0)}>
          {t(w.replayStart)}
        </button>
        <button disabled={isBusy || !chosen.length || !from.trim()} onClick={() => void start(1)}>
          {t(w.dryRun)}
        </button>
      </span>
    </div>
  );
}

function Replays({ rows, using, onChanged }: { rows: ReplayRow[]; using: Using | undefined; onChanged: () => void }) {
  const name = new Map(using?.rows.map((each) => [String(each.id), each.name]));
  const cancel = async (id: number): Promise<void> => {
    try {
      await call("cancel_replay", { id: String(id) });
    } catch (error) {
      tellError(error);
    }
    onChanged();
  };
  return (
    <div class="scroll">
      <table>
        <thead>
          <tr>
            <th>{t(common.object)}</th>
            <th>{t(common.state)}</th>
            <th class="narrow-hide">{t(w.range)}</th>
            <th>{t(w.progress)}</th>
            <th class="narrow-hide num">{t(w.result)}</th>
            <th>
              <span class="sr">{t(w.cancelReplay)}</span>
            </th>
          </tr>
        </thead>
        <tbody>
          {rows.map((row) => (
            <tr key={row.id}>
              <td>
                <Name text={name.get(row.object_id) ?? row.object_id} />
              </td>
              <td class="nowrap">
                <State row={row} />
              </td>
              <td class="narrow-hide dim">{`${row.start_time.slice(0, 16)} – ${row.end_time?.slice(0, 16) ?? t(w.untilNow)}`}</td>
              <td>
                <Progress row={row} name={name.get(row.object_id) ?? row.object_id} />
              </td>
              <td class="narrow-hide num">{row.mosaic_after === null ? "–" : `${row.mosaic_before ?? 0} → ${row.mosaic_after}`}</td>
              <td class="fit">
                {isGoing(row) && (
                  <button class="small" onClick={() => void cancel(row.id)}>
                    {t(w.cancelReplay)}
                  </button>
                )}
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

const isGoing = (row: ReplayRow): boolean => row.state === "waiting" || row.state === "running";

function State({ row }: { row: ReplayRow }) {
  const state = row.state as keyof typeof STATES;
  return (
    <>
      <Tag kind={MEANING[state] ?? ""}>{STATES[state] ? t(STATES[state]) : row.state}</Tag> {!!row.dry_run && <span class="dim">{t(w.dryRun)}</span>}
      {row.info && (
        <div class={row.state === "failed" ? "is-bad" : "dim"}>
          <Name text={keptReason(row.info, language.value)} />
        </div>
      )}
    </>
  );
}

function Progress({ row, name }: { row: ReplayRow; name: string }) {
  const { records_done, records_total } = row;
  if (!isGoing(row)) return <span class="dim">{records_done.toLocaleString()}</span>;
  return <progress aria-label={`${name}: ${t(w.progress)}`} max={Math.max(1, records_total)} value={records_done} />;
}
