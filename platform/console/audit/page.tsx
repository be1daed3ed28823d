/** Who changed or commanded what, when and from where. */
import { useState } from "preact/hooks";
import type { Fields, Result, RowOf } from "terrazzo-client";
import { Dialog, Empty, Head, Name } from "../parts/basics.tsx";
import { DayField } from "../parts/day-field.tsx";
import { ExportButton } from "../parts/export.tsx";
import { orderBy, RecordList } from "../parts/list.tsx";
import type { Column, Order } from "../parts/table.tsx";
import { page } from "../shell/api.ts";
import { clock } from "../shell/clock.ts";
import { titles } from "../shell/pages.ts";
import { replaceQuery, route } from "../shell/routes.ts";
import { t } from "../words/words.ts";
import { actionWord } from "./action-words.ts";
import { ENTITIES, entityWord } from "./entity-words.ts";
import { w } from "./words.ts";

type Entry = RowOf<Result<"get_audit_list">>;

const NEWEST: Order = { field: "time", isDown: true };
const FILTERS = ["username", "entity", "uid", "batch"] as const;
const EXPORTED = ["id", "time", "username", "address", "action", "entity", "uid", "batch", "before", "after"] as const;

function fieldsOf(query: URLSearchParams): Fields<"get_audit_list"> {
  const given = Object.fromEntries(FILTERS.flatMap((name) => (query.get(name) ? [[name, query.get(name)]] : [])));
  const [start, end] = [query.get("start"), query.get("end")];
  return { ...given, ...(start ? { start_time: `${start} 00:00:00` } : {}), ...(end ? { end_time: `${end} 23:59:59.999999` } : {}) };
}

export function Page() {
  const query = route.value.query;
  const [shown, setShown] = useState<Entry | null>(null);
  const key = [...FILTERS, "start", "end"].map((name) => query.get(name) ?? "").join("\n");
  const read = (index: number, size: number, order: Order | null, abort: AbortSignal) =>
    page("get_audit_list", { ...fieldsOf(route.value.query), ...orderBy(order), page_index: index, page_size: size }, abort);
  const columns: Column<Entry>[] = [
    { id: "time", title: t(w.when), sort: "time", width: 18, render: (row) => <When row={row} /> },
    { id: "user", title: t(w.who), width: 14, render: (row) => <Name text={row.username} /> },
    {
      id: "action",
      title: t(w.what),
      width: 12,
      render: (row) => (
        <button class="plain small" aria-label={t(w.open, { id: row.id, what: actionWord(row.action) })} onClick={() => setShown(row)}>
          {actionWord(row.action)}
        </button>
      ),
    },
    { id: "entity", title: t(w.entity), width: 14, isMinor: true, render: (row) => entityWord(row.entity) },
    { id: "uid", title: t(w.record), width: 24, isOwnLine: true, render: (row) => <><span class="narrow-only">{entityWord(row.entity)}</span> <Name text={recordOf(row)} mono /></> },
    { id: "address", title: t(w.from), width: 18, isMinor: true, render: (row) => <Name text={row.address} mono /> },
  ];
  return (
    <>
      <Head title={t(titles.audit)}>
        <ExportButton<Entry> name={`audit-${clock.format(clock.now.value).slice(0, 10)}.csv`} columns={EXPORTED} read={(index, size, abort) => read(index, size, NEWEST, abort)} />
      </Head>
      <RecordList
        label={t(titles.audit)}
        columns={columns}
        query={key}
        order={NEWEST}
        read={read}
        rowKey={(row) => String(row.id)}
        turn={0}
        empty={<Empty title={t(w.none)}>{t(w.noneDo)}</Empty>}
        tools={<Filters />}
      />
      {shown && <EntryDialog entry={shown} onClose={() => setShown(null)} />}
    </>
  );
}

/** The time; on a phone with what was changed. */
function When({ row }: { row: Entry }) {
  return <span title={row.time}>{row.time.slice(5, 19)}</span>;
}

function recordOf(row: Entry): string {
  return row.uid || String(row.record_id ?? row.id);
}

function Filters() {
  const query = route.value.query;
  const set = (name: string) => (event: { currentTarget: HTMLInputElement }) => replaceQuery({ [name]: event.currentTarget.value.trim() });
  return (
    <>
      <input aria-label={t(w.user)} placeholder={t(w.user)} maxLength={96} value={query.get("username") ?? ""} onChange={set("username")} />
      <select aria-label={t(w.entity)} value={query.get("entity") ?? ""} onChange={(event) => replaceQuery({ entity: event.currentTarget.value })}>
        <option value="">{t(w.anyEntity)}</option>
        {ENTITIES.map((each) => (
          <option key={each} value={each}>
            {entityWord(each)}
          </option>
        ))}
      </select>
      <input aria-label={t(w.record)} placeholder={t(w.record)} maxLength={96} value={query.get("uid") ?? ""} onChange={set("uid")} />
      <DayField label={t(w.start)} value={query.get("start") ?? ""} onChange={(start) => replaceQuery({ start })} />
      <DayField label={t(w.end)} value={query.get("end") ?? ""} onChange={(end) => replaceQuery({ end })} />
      {query.get("batch") && (
        <button class="small" onClick={() => replaceQuery({ batch: "" })}>
          {`${t(w.batch)} ✕`}
        </button>
      )}
    </>
  );
}

function EntryDialog({ entry, onClose }: { entry: Entry; onClose: () => void }) {
  const before = (entry.before ?? {}) as Record<string, unknown>;
  const after = (entry.after ?? {}) as Record<string, unknown>;
  const names = [...new Set([...Object.keys(before), ...Object.keys(after)])].filter((name) => JSON.stringify(before[name]) !== JSON.stringify(after[name]));
  return (
    <Dialog title={t(w.entry, { id: entry.id })} onClose={onClose} class="broad">
      <dl class="facts">
        <dt>{t(w.when)}</dt>
        <dd>{entry.time}</dd>
        <dt>{t(w.who)}</dt>
        <dd>
          <Name text={entry.username} /> <span class="dim mono">{entry.address}</span>
        </dd>
        <dt>{t(w.what)}</dt>
        <dd>
          <span class="strong">{actionWord(entry.action)}</span> {entityWord(entry.entity)} <Name text={entry.uid} mono />
        </dd>
      </dl>
      <div class="scroll" tabIndex={0} role="region" aria-label={t(w.field)}>
        <table>
          <thead>
            <tr>
              <th scope="col">{t(w.field)}</th>
              <th scope="col">{t(w.before)}</th>
              <th scope="col">{t(w.after)}</th>
            </tr>
          </thead>
          <tbody>
            {names.map((name) => (
              <tr key={name}>
                <td class="mono">{name}</td>
                <td>
                  <Name text={textOf(before[name])} />
                </td>
                <td>
                  <Name text={textOf(after[name])} />
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      {entry.batch && (
        <footer>
          <button
            onClick={() => {
              replaceQuery({ batch: entry.batch ?? "" });
              onClose();
            }}
          >
            {t(w.batch)}
          </button>
        </footer>
      )}
    </Dialog>
  );
}

function textOf(value: unknown): string {
  return value === undefined ? "" : typeof value === "string" ? value : JSON.stringify(value);
}
