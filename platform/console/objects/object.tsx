/** One object: its variables, curves, commands and records. */
import { useMemo, useRef, useState } from "preact/hooks";
import { Chart } from "../charts/chart.tsx";
import { keepFile } from "../charts/export.ts";
import { type ChartView, readView, writeView } from "../charts/link.ts";
import type { Mark } from "../charts/plot.ts";
import type { Result } from "terrazzo-client";
import { Age, Card, Empty, Head, Name, Problem, Spark, Tag } from "../parts/basics.tsx";
import { SEVERITIES } from "../overview/todo.tsx";
import { call, download, may, page } from "../shell/api.ts";
import { clock } from "../shell/clock.ts";
import { useLive, useLoad, useSeldom, useSend } from "../shell/hooks.ts";
import { link, readRoute, route } from "../shell/routes.ts";
import { tellError } from "../shell/toasts.tsx";
import { w as common } from "../words/common.ts";
import { language, t } from "../words/words.ts";
import { Commands } from "./commands.tsx";
import { ObjectDashboards } from "./dashboards.tsx";
import { ObjectDialog } from "./edit.tsx";
import { w as editing } from "./edit-words.ts";
import { curvesOf, type FindNewest } from "./curves.ts";
import { GroupsOf } from "./groups.tsx";
import { Flags } from "./list.tsx";
import { Logbook } from "./log.tsx";
import { w as logWords } from "./log-words.ts";
import { Records } from "./records.tsx";
import { chartVariable, labelOf, type ObjectVariable, rangeOf, severityOf, shownValue, terminalsOf, type Value } from "./variables.ts";
import { w } from "./words.ts";

export type ObjectItem = Result<"get_object_item">;
type Happening = { id: number; kind: "event" | "label"; code: string; name: string; at: string; until: string | null; severity: string };

const CURVES_FIRST = 3;
const SPARK_POINTS = 96;
const DAY_MS = 86_400_000;
const SEVERE = ["major", "critical"];

export function ObjectPage({ id }: { id: string }) {
  const item = useLoad((abort) => call("get_object_item", { id }, abort), [id], 60_000);
  const [isEditing, setEditing] = useState(false);
  const [flags, setFlags] = useState<Partial<ObjectItem>>({});
  const tab = route.value.query.get("tab") ?? "";
  useLive({ kinds: ["object"], object_id: id }, ({ data }) => setFlags(data as Partial<ObjectItem>), item.reload);
  if (!item.data) return item.error !== undefined ? <Missing error={item.error} retry={item.reload} /> : <p class="dim">{t(common.loading)}</p>;
  const row: ObjectItem = { ...item.data, ...flags, name: item.data.name };
  return (
    <>
      <Head title={row.name} name sub={<Flags row={row} />}>
        {may("admin") && <button onClick={() => setEditing(true)}>{t(editing.edit)}</button>}
        <a class="button" href={link(["objects"])}>
          {t(w.back)}
        </a>
      </Head>
      {isEditing && <ObjectDialog row={row} onClose={() => setEditing(false)} onDone={item.reload} />}
      <Tabs id={id} shown={tab} />
      {tab === "log" ? <Logbook id={id} /> : <Shown row={row} onDone={item.reload} />}
    </>
  );
}

function Tabs({ id, shown }: { id: string; shown: string }) {
  const entry = (tab: string, name: string) => (
    <a href={link(["objects", id], { tab })} aria-current={shown === tab ? "page" : undefined}>
      {name}
    </a>
  );
  return (
    <nav class="tabs" aria-label={t(w.title)}>
      {entry("", t(logWords.now))}
      {entry("log", t(logWords.logbook))}
    </nav>
  );
}

function Missing({ error, retry }: { error: unknown; retry: () => void }) {
  return (
    <>
      <Head title={t(w.title)} />
      <Problem error={error} retry={retry} />
      <p>
        <a href={link(["objects"])}>{t(w.back)}</a>
      </p>
    </>
  );
}

function Shown({ row, onDone }: { row: ObjectItem; onDone: () => void }) {
  const id = String(row.id);
  const variables = useLoad((abort) => call("get_object_variable_list", { object_id: id }, abort), [id], 60_000);
  const [newest, setNewest] = useState<Record<string, { value: Value; time: string }>>({});
  useLive(
    { kinds: ["mosaic"], object_id: id },
    ({ data }) => {
      const time = String(data["time"]);
      const came = Object.entries(data["value"] as Record<string, Value>).map(([code, value]) => [code, { value, time }] as const);
      setNewest((before) => ({ ...before, ...Object.fromEntries(came) }));
    },
    variables.reload,
  );
  const all = (variables.data ?? []).map((each) => {
    const came = newest[each.code];
    return came && came.time >= (each.time ?? "") ? { ...each, value: came.value, time: came.time } : each;
  });
  return (
    <div class="grid">
      {variables.error !== undefined && <Problem error={variables.error} retry={variables.reload} />}
      <Curves id={id} name={row.name} isOnline={!!row.is_online} variables={all} />
      <Commands row={row} variables={all} />
      <About row={row} />
      <Records row={row} onDone={onDone} />
      <ObjectDashboards id={id} />
    </div>
  );
}

function viewOf(variables: readonly ObjectVariable[]): ChartView {
  const view = readView(route.value.query);
  if (route.value.query.has("key") || route.value.query.has("none")) return view;
  const numbers = variables.filter((each) => typeof each.value === "number" && each.code !== "BOOT" && !Object.keys(each.states as object).length);
  return { ...view, keys: numbers.slice(0, CURVES_FIRST).map((each) => each.code) };
}

/** `isNone`: that there are no curves is what somebody chose, and not that no variables have come yet. */
function keepView(id: string, view: ChartView, isNone: boolean): void {
  const query = writeView(view);
  if (isNone) query.set("none", "1");
  history.replaceState(null, "", `${link(["objects", id])}?${query}`);
  route.value = readRoute(location.hash);
}

function Curves({ id, name, isOnline, variables }: { id: string; name: string; isOnline: boolean; variables: ObjectVariable[] }) {
  const newest = useRef<FindNewest>(() => null);
  newest.current = (code) => {
    const known = isOnline ? variables.find((each) => each.code === code) : undefined;
    return known?.time && typeof known.value === "number" ? { value: known.value, since: clock.parse(known.time) } : null;
  };
  const source = useMemo(() => curvesOf((code) => ({ objectId: id, code }), (code) => newest.current(code)), [id]);
  const view = viewOf(variables);
  const shown = view.keys.flatMap((code) => variables.filter((each) => each.code === code)).map((each) => chartVariable(each));
  const from = view.live || !view.range ? clock.now.peek() - view.spanMs : view.range.from;
  const to = view.live || !view.range ? null : view.range.to;
  const happened = useHappened(id, from, to);
  const draw = (code: string): void => {
    const keys = view.keys.includes(code) ? view.keys.filter((each) => each !== code) : [...view.keys, code];
    keepView(id, { ...view, keys }, !keys.length);
  };
  return (
    <>
      <Card title={t(w.chart)} more={<Export id={id} name={name} view={view} />}>
        <Chart title={name} source={source} variables={shown} view={view} onView={(next) => keepView(id, next, route.value.query.has("none"))} marks={happened.map(markOf)} />
      </Card>
      <Card class="span8" title={t(w.variables)}>
        <Variables id={id} variables={variables} drawn={view.keys} onDraw={draw} />
      </Card>
      <Card class="span4" title={t(w.happened)} more={<a href={link(["events"], { state: "all", object: id })}>{t(common.all)}</a>}>
        <Happened rows={happened} />
      </Card>
    </>
  );
}

/** What is shown as Parquet, where the platform makes that; all values, of all times, as CSV. */
function Export({ id, name, view }: { id: string; name: string; view: ChartView }) {
  const keys: Record<string, string> = view.keys.length ? { keys: JSON.stringify(view.keys) } : {};
  const path = `export/mosaic/${encodeURIComponent(id)}`;
  const { send, isBusy } = useSend(async () => {
    const to = view.live || !view.range ? clock.now.peek() : view.range.to;
    const from = view.live || !view.range ? to - view.spanMs : view.range.from;
    const times = { start: new Date(from).toISOString(), end: new Date(to).toISOString() };
    try {
      keepFile(await download(path, { format: "parquet", ...keys, ...times }), `${name}.parquet`);
    } catch (error) {
      tellError(error);
    }
  });
  return (
    <span class="line">
      <button class="plain small" title={t(w.parquetHint)} disabled={isBusy || !view.keys.length} onClick={send}>
        {"Parquet"}
      </button>
      <a href={`${path}?${new URLSearchParams({ format: "csv", ...keys })}`} download>
        {t(w.allValues)}
      </a>
    </span>
  );
}

function Variables(props: { id: string; variables: ObjectVariable[]; drawn: string[]; onDraw: (code: string) => void }) {
  const { id, variables, drawn, onDraw } = props;
  const sparks = useLoad(
    async (abort) => {
      const end = clock.now.peek();
      const times = { start_time: new Date(end - DAY_MS).toISOString(), end_time: new Date(end).toISOString() };
      const { data } = await call("get_mosaic_chart", { object_id: id, keys: ["*"], points: SPARK_POINTS, ...times }, abort);
      return data as Record<string, { values: number[] }>;
    },
    [id],
    300_000,
  );
  const hasRanges = variables.some((each) => rangeOf(each) !== "");
  if (!variables.length) return <Empty title={t(w.noVariables)}>{t(w.noVariablesDo)}</Empty>;
  return (
    <div class="scroll">
      <table class="variables">
        <thead>
          <tr>
            <th class="fit">
              <span class="sr">{t(w.chart)}</span>
            </th>
            <th>{t(common.name)}</th>
            <th class="num">{t(common.value)}</th>
            <th>{t(w.unit)}</th>
            {hasRanges && <th class="narrow-hide">{t(w.range)}</th>}
            <th class="narrow-hide">{t(w.day)}</th>
            <th class="narrow-hide">{t(w.from)}</th>
            <th class="num">{t(w.age)}</th>
          </tr>
        </thead>
        <tbody>
          {variables.map((each) => (
            <VariableRow key={each.code} row={each} hasRange={hasRanges} isDrawn={drawn.includes(each.code)} onDraw={onDraw} day={sparks.data?.[each.code]?.values ?? []} />
          ))}
        </tbody>
      </table>
    </div>
  );
}

function VariableRow(props: { row: ObjectVariable; hasRange: boolean; isDrawn: boolean; onDraw: (code: string) => void; day: number[] }) {
  const { row, hasRange, isDrawn, onDraw, day } = props;
  const value = row.value as Value;
  const severity = severityOf(row, value);
  const name = labelOf(row);
  return (
    <tr>
      <td class="fit">
        <input type="checkbox" checked={isDrawn} aria-label={t(w.draw, { name })} onChange={() => onDraw(row.code)} />
      </td>
      <td>
        <Name text={name} />
      </td>
      <td class="num strong">
        {severity && <Tag kind={SEVERE.includes(severity) ? "bad" : "warn"}>{severityWord(severity)}</Tag>} <Name text={shownValue(row, value)} />
      </td>
      <td class="dim unit">
        <Name text={row.unit} />
      </td>
      {hasRange && <td class="narrow-hide dim nowrap">{rangeOf(row)}</td>}
      <td class="narrow-hide spark-cell">{day.length > 1 && <Spark values={day} label={`${name}: ${t(w.day)}`} />}</td>
      <td class="narrow-hide dim">
        <Name mono text={row.code} />
      </td>
      <td class="num dim nowrap">
        <Age at={row.time} />
      </td>
    </tr>
  );
}

function severityWord(severity: string): string {
  const known = SEVERITIES[severity];
  return known ? t(known.word) : severity;
}

/** Events and labels between two instants; `to` null: until now, followed. */
function useHappened(id: string, from: number, to: number | null): Happening[] {
  const minute = 60_000;
  const found = useLoad(
    async (abort) => {
      const range = { start_time: new Date(from).toISOString(), ...(to === null ? {} : { end_time: new Date(to).toISOString() }) };
      const fields = { object_id: id, page_size: 100, ...range };
      const [events, labels] = await Promise.all([page("get_event_list", fields, abort), page("get_retainer_label_list", fields, abort)]);
      return [...events.rows.map(eventOf), ...labels.rows.map(labelRow)].sort((a, b) => (a.at < b.at ? 1 : -1));
    },
    [id, Math.floor(from / minute), to, language.value],
  );
  const again = useSeldom(found.reload, 2_000);
  useLive(to === null ? { kinds: ["event", "retainer"], object_id: id } : null, again, found.reload);
  return found.data ?? [];
}

const named = (row: { label_en: string; label_cn: string; code: string }): string =>
  (language.value === "zh" ? row.label_cn || row.label_en : row.label_en || row.label_cn) || row.code;

function eventOf(row: { id: number; code: string; label_en: string; label_cn: string; created: string; severity: string }): Happening {
  return { id: row.id, kind: "event", code: row.code, name: named(row), at: row.created, until: null, severity: row.severity };
}

function labelRow(row: { id: number; code: string; label_en: string; label_cn: string; opened_at: string; close_at: string }): Happening {
  return { id: row.id, kind: "label", code: row.code, name: named(row), at: row.opened_at, until: row.close_at || null, severity: "" };
}

function markOf(row: Happening): Mark {
  const css = getComputedStyle(document.documentElement);
  const color = css.getPropertyValue(SEVERE.includes(row.severity) ? "--bad" : "--warn").trim();
  if (row.kind === "event") return { at: clock.parse(row.at), to: null, color, name: row.name };
  return { at: clock.parse(row.at), to: row.until ? clock.parse(row.until) : clock.now.peek(), color, name: row.name };
}

function Happened({ rows }: { rows: Happening[] }) {
  if (!rows.length) return <p class="dim">{t(w.nothingHappened)}</p>;
  return (
    <ul class="happened">
      {rows.slice(0, 12).map((each) => (
        <li key={`${each.kind}${each.id}`}>
          <Tag kind={SEVERE.includes(each.severity) ? "bad" : each.until ? "" : "warn"}>{each.severity ? severityWord(each.severity) : t(each.until ? w.closed : w.open)}</Tag>
          <Name text={each.name} />
          <span class="dim nowrap">
            <Age at={each.at} />
          </span>
        </li>
      ))}
    </ul>
  );
}

function About({ row }: { row: ObjectItem }) {
  const terminals = terminalsOf(row);
  const tables = [["mapping", t(editing.mapping), row.mapping_id], ["control", t(editing.control), row.control_id]] as const;
  return (
    <Card class="span4" title={t(w.facts)}>
      <dl class="facts">
        <dt>{t(w.description)}</dt>
        <dd>
          <Name text={row.description || "–"} />
        </dd>
        <dt>{t(w.model)}</dt>
        <dd>
          <Name text={row.model || "–"} />
        </dd>
        <dt>{t(w.serial)}</dt>
        <dd>
          <Name text={row.serial_no || "–"} />
        </dd>
        <dt>{t(w.place)}</dt>
        <dd>
          <Name text={[row.city, row.province, row.gis].filter(Boolean).join(" · ") || "–"} />
        </dd>
        {tables.map(([kind, title, uid]) => (
          <>
            <dt>{title}</dt>
            <dd>{uid ? <a href={link(kind === "mapping" ? ["mapping", uid] : ["mapping", "control", uid])}>{t(common.open)}</a> : t(common.none)}</dd>
          </>
        ))}
        <dt>{t(w.groups)}</dt>
        <dd>
          <GroupsOf id={String(row.id)} />
        </dd>
        <dt>{t(w.terminals)}</dt>
        <dd class="line">
          {terminals.map((uid) => (
            <a key={uid} href={link(["terminals", uid])}>
              <Name mono text={uid} />
            </a>
          ))}
        </dd>
      </dl>
    </Card>
  );
}
