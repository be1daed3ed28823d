/** Events: counted by day, filtered by the server, handled one by one or many at once, taken away as a file. */
import { useEffect, useState } from "preact/hooks";
import type { Fields, Result, RowOf } from "terrazzo-client";
import { SEVERITIES } from "../overview/todo.tsx";
import { Age, Bars, Card, dayBars, Empty, type Meaning, Name, Tag } from "../parts/basics.tsx";
import { ExportButton } from "../parts/export.tsx";
import { type Column, type Order, orderOf, Table } from "../parts/table.tsx";
import { call, may, page } from "../shell/api.ts";
import { clock } from "../shell/clock.ts";
import { useLive, useLoad, useRested, useSeldom } from "../shell/hooks.ts";
import { link, replaceQuery, route } from "../shell/routes.ts";
import { w as common } from "../words/common.ts";
import { language, type Pair, t } from "../words/words.ts";
import { Chosen, MOST_CHOSEN } from "./chosen.tsx";
import { EventDialog } from "./dialog.tsx";
import { w } from "./words.ts";

export type Event = RowOf<Result<"get_event_list">>;

const NEWEST: Order = { field: "created", isDown: true };
const SETTLE_MS = 2_000;
export const STATES: Record<string, { kind: Meaning; word: Pair }> = {
  raised: { kind: "warn", word: w.raised },
  acknowledged: { kind: "info", word: w.acknowledged },
  cleared: { kind: "", word: w.cleared },
};

/** An event's name in the language that is shown. */
export function nameOf(event: { label_en: string; label_cn: string; code: string }): string {
  return (language.value === "zh" ? event.label_cn : event.label_en) || event.code;
}

const DAYS = 14;
const REST_MS = 200;
const SEARCHED = ["code", "label_en", "label_cn", "terminal_id"] as const;
const EXPORTED = ["id", "created", "severity", "code", "label_en", "label_cn", "value", "extension_key", "object_id", "terminal_id", "state", "acknowledged_at", "cleared_at", "shelved_until"] as const;

function conditionsOf(query: URLSearchParams): string[][] {
  const state = query.get("state") ?? "raised";
  const severity = query.get("severity");
  const object = query.get("object");
  return [...(state !== "all" ? [["state", "=", state]] : []), ...(severity ? [["severity", "=", severity]] : []), ...(object ? [["object_id", "=", object]] : [])];
}

/** What one looks for: any part of a code, a name or a terminal. */
function searchOf(query: URLSearchParams): { where_or?: string[][] } {
  const text = query.get("search") ?? "";
  return text ? { where_or: SEARCHED.map((name) => [name, "like", `%${text}%`]) } : {};
}

function fieldsOf(query: URLSearchParams): Fields<"get_event_list"> {
  const order = orderOf(query, NEWEST);
  const conditions = conditionsOf(query);
  const day = query.get("day");
  return {
    ...(conditions.length ? { where_and: conditions } : {}),
    ...searchOf(query),
    ...(day ? { start_time: `${day} 00:00:00`, end_time: `${day} 23:59:59.999999` } : {}),
    order_by: [order.field, order.isDown ? "desc" : "asc"],
  };
}

const read = (index: number, size: number, abort: AbortSignal) =>
  page("get_event_list", { ...fieldsOf(route.value.query), page_index: index, page_size: size }, abort);

export function Events() {
  const query = route.value.query;
  const [chosen, setChosen] = useState<ReadonlySet<number>>(new Set());
  const [shown, setShown] = useState<readonly Event[]>([]);
  const [turn, setTurn] = useState(0);
  const again = () => setTurn((n) => n + 1);
  const soon = useSeldom(again, SETTLE_MS);
  useLive({ kinds: ["event"] }, soon, soon);
  const opened = Number(query.get("event"));
  const key = ["state", "severity", "sort", "down", "day", "object", "search"].map((name) => query.get(name) ?? "").join("\n");
  const toggle = (id: number) => {
    const next = new Set(chosen);
    if (!next.delete(id) && next.size < MOST_CHOSEN) next.add(id);
    setChosen(next);
  };
  const readAndKeep = async (index: number, size: number, abort: AbortSignal) => {
    const found = await read(index, size, abort);
    if (index === 1) setShown(found.rows);
    return found;
  };
  return (
    <Card>
      <ByDay turn={turn} />
      <div class="tools">
        <Search />
        <select aria-label={t(common.state)} value={query.get("state") ?? "raised"} onChange={(event) => replaceQuery({ state: event.currentTarget.value })}>
          <option value="raised">{t(w.open)}</option>
          <option value="acknowledged">{t(w.acknowledged)}</option>
          <option value="cleared">{t(w.cleared)}</option>
          <option value="all">{t(w.anyState)}</option>
        </select>
        <select aria-label={t(w.severity)} value={query.get("severity") ?? ""} onChange={(event) => replaceQuery({ severity: event.currentTarget.value })}>
          <option value="">{t(w.anySeverity)}</option>
          {Object.entries(SEVERITIES).map(([name, each]) => (
            <option key={name} value={name}>
              {t(each.word)}
            </option>
          ))}
        </select>
        {query.get("day") && (
          <button class="small" onClick={() => replaceQuery({ day: "" })}>
            {`${query.get("day")} ✕`}
          </button>
        )}
        {query.get("object") && <OfObject id={query.get("object") ?? ""} />}
        {may("operator") && (
          <button onClick={() => setChosen(new Set(shown.slice(0, MOST_CHOSEN).map((each) => each.id)))} disabled={!shown.length}>
            {t(w.chooseShown, { n: shown.length })}
          </button>
        )}
        <ExportButton<Event> name={`events-${clock.format(clock.now.value).slice(0, 10)}.csv`} columns={EXPORTED} read={read} />
      </div>
      <Chosen
        ids={[...chosen]}
        onNone={() => setChosen(new Set())}
        onDone={() => {
          setChosen(new Set());
          again();
        }}
      />
      <Table
        label={t(w.events)}
        columns={columns(chosen, toggle)}
        query={key}
        read={readAndKeep}
        rowKey={(row) => String(row.id)}
        order={orderOf(query, NEWEST)}
        onOrder={(order) => replaceQuery({ sort: order.field, down: order.isDown ? "1" : "" })}
        turn={turn}
        empty={query.get("search") ? <Empty title={t(common.nothing)}>{t(common.nothingDo)}</Empty> : <Empty title={t(w.none)}>{t(w.noneDo)}</Empty>}
      />
      {opened > 0 && <EventDialog id={opened} onClose={() => replaceQuery({ event: "" })} onChange={again} />}
    </Card>
  );
}

function Search() {
  const [text, setText] = useState(route.value.query.get("search") ?? "");
  const rested = useRested(text.trim(), REST_MS);
  useEffect(() => {
    if (rested !== (route.value.query.get("search") ?? "")) replaceQuery({ search: rested });
  }, [rested]);
  return (
    <label class="grow">
      <span class="sr">{t(w.search)}</span>
      <input type="search" maxLength={64} placeholder={t(w.search)} value={text} onInput={(event) => setText(event.currentTarget.value)} />
    </label>
  );
}

/** The object whose events alone are shown, until somebody wants all again. */
function OfObject({ id }: { id: string }) {
  const { data } = useLoad((abort) => call("get_object_item", { id }, abort), [id]);
  return (
    <button class="small" onClick={() => replaceQuery({ object: "" })}>
      <Name text={data?.name ?? id} /> {"✕"}
    </button>
  );
}

function ByDay({ turn }: { turn: number }) {
  const query = route.value.query;
  const conditions = conditionsOf(query).filter(([name]) => name !== "state");
  const { data } = useLoad(
    (abort) => call("get_event_quantity_by_day", { day: DAYS, ...(conditions.length ? { where_and: conditions } : {}), ...searchOf(query) }, abort),
    [conditions, query.get("search"), turn],
  );
  if (!data) return <div class="columns" />;
  return <Bars label={t(w.byDay)} bars={dayBars(data)} chosen={query.get("day") ?? ""} onChoose={(day) => replaceQuery({ day, state: day ? "all" : "" })} />;
}

function columns(chosen: ReadonlySet<number>, toggle: (id: number) => void): Column<Event>[] {
  const choosing: Column<Event>[] = may("operator")
    ? [
        {
          id: "choose",
          title: t(w.chooseTitle),
          isTitleHidden: true,
          width: 4,
          render: (row) => <input type="checkbox" aria-label={t(w.choose, { name: nameOf(row).slice(0, 80) })} checked={chosen.has(row.id)} onChange={() => toggle(row.id)} />,
        },
      ]
    : [];
  return [
    ...choosing,
    {
      id: "severity",
      title: t(w.severity),
      sort: "severity",
      width: 11,
      render: (row) => <Tag kind={SEVERITIES[row.severity]?.kind ?? ""}>{SEVERITIES[row.severity] ? t((SEVERITIES[row.severity] as { word: Pair }).word) : row.severity}</Tag>,
    },
    {
      id: "name",
      title: t(w.event),
      width: 30,
      render: (row) => (
        <>
          <a href={link(["events"], { ...Object.fromEntries(route.value.query), event: String(row.id) })}>
            <Name text={nameOf(row)} />
          </a>
          <span class="narrow-show">
            <Name text={row.terminal_id} mono />
          </span>
        </>
      ),
    },
    { id: "value", title: t(w.value), width: 12, isNumber: true, isMinor: true, render: (row) => <Name text={row.value} /> },
    { id: "terminal", title: t(common.terminal), width: 18, isMinor: true, render: (row) => <a href={link(["terminals", row.terminal_id])}><Name text={row.terminal_id} mono /></a> },
    { id: "state", title: t(common.state), width: 15, render: (row) => <State row={row} /> },
    { id: "created", title: t(w.when), sort: "created", isNumber: true, render: (row) => <Age at={row.created} /> },
  ];
}

/** A state that is shelved says until when. */
export function State({ row }: { row: { state: string; shelved_until?: string | null | undefined } }) {
  const isShelved = !!row.shelved_until && row.state !== "cleared" && clock.parse(row.shelved_until ?? "") > clock.now.value;
  const state = STATES[row.state];
  return (
    <span title={isShelved ? t(w.shelvedUntil, { until: row.shelved_until ?? "" }) : undefined}>
      <Tag kind={isShelved ? "" : (state?.kind ?? "")}>{isShelved ? t(w.shelved) : state ? t(state.word) : row.state}</Tag>
    </span>
  );
}
