/** Events: filtered by the server, handled one by one or many at once. */
import { useState } from "preact/hooks";
import type { Fields, Result, RowOf } from "../client/gateway.ts";
import { SEVERITIES } from "../overview/todo.tsx";
import { Age, Card, Empty, type Meaning, Name, Tag } from "../parts/basics.tsx";
import { type Column, type Order, orderOf, Table } from "../parts/table.tsx";
import { call, may, page } from "../shell/api.ts";
import { useLive, useSeldom } from "../shell/hooks.ts";
import { link, replaceQuery, route } from "../shell/routes.ts";
import { tell, tellError } from "../shell/toasts.tsx";
import { w as common } from "../words/common.ts";
import { language, type Pair, t } from "../words/words.ts";
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

function fieldsOf(query: URLSearchParams): Fields<"get_event_list"> {
  const state = query.get("state") ?? "raised";
  const severity = query.get("severity");
  const order = orderOf(query, NEWEST);
  const conditions = [...(state !== "all" ? [["state", "=", state]] : []), ...(severity ? [["severity", "=", severity]] : [])];
  return { ...(conditions.length ? { where_and: conditions } : {}), order_by: [order.field, order.isDown ? "desc" : "asc"] };
}

export function Events() {
  const query = route.value.query;
  const [chosen, setChosen] = useState<ReadonlySet<number>>(new Set());
  const [turn, setTurn] = useState(0);
  const again = () => setTurn((n) => n + 1);
  const soon = useSeldom(again, SETTLE_MS);
  useLive({ kinds: ["event"] }, soon, soon);
  const opened = Number(query.get("event"));
  const toggle = (id: number) => {
    const next = new Set(chosen);
    if (!next.delete(id)) next.add(id);
    setChosen(next);
  };
  const handle = async (action: "acknowledge_event" | "clear_event") => {
    let n = 0;
    try {
      for (const id of chosen) {
        await call(action, { id });
        n += 1;
      }
      setChosen(new Set());
    } catch (error) {
      tellError(error);
    }
    if (n) tell(t(w.done, { n }));
    again();
  };
  return (
    <Card>
      <div class="tools">
        <select aria-label={t(w.open)} value={query.get("state") ?? "raised"} onChange={(event) => replaceQuery({ state: event.currentTarget.value })}>
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
        {chosen.size > 0 && (
          <>
            <span class="dim">{t(w.chosen, { n: chosen.size })}</span>
            <button onClick={() => void handle("acknowledge_event")}>{t(w.acknowledge)}</button>
            <button onClick={() => void handle("clear_event")}>{t(w.clear)}</button>
          </>
        )}
      </div>
      <Table
        label={t(w.events)}
        columns={columns(chosen, toggle)}
        query={["state", "severity", "sort", "down"].map((name) => query.get(name) ?? "").join("\n")}
        read={(index, size, abort) => page("get_event_list", { ...fieldsOf(route.value.query), page_index: index, page_size: size }, abort)}
        rowKey={(row) => String(row.id)}
        order={orderOf(query, NEWEST)}
        onOrder={(order) => replaceQuery({ sort: order.field, down: order.isDown ? "1" : "" })}
        turn={turn}
        empty={<Empty title={t(w.none)}>{t(w.noneDo)}</Empty>}
      />
      {opened > 0 && <EventDialog id={opened} onClose={() => replaceQuery({ event: "" })} onChange={again} />}
    </Card>
  );
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
      width: 33,
      render: (row) => (
        <a href={link(["events"], { ...Object.fromEntries(route.value.query), event: String(row.id) })}>
          <Name text={nameOf(row)} />
        </a>
      ),
    },
    { id: "value", title: t(w.value), width: 12, isNumber: true, render: (row) => <Name text={row.value} /> },
    { id: "terminal", title: t(common.terminal), width: 18, isMinor: true, render: (row) => <a href={link(["terminals", row.terminal_id])}><Name text={row.terminal_id} mono /></a> },
    { id: "state", title: t(common.state), width: 12, render: (row) => <Tag kind={STATES[row.state]?.kind ?? ""}>{STATES[row.state] ? t((STATES[row.state] as { word: Pair }).word) : row.state}</Tag> },
    { id: "created", title: t(w.when), sort: "created", isNumber: true, render: (row) => <Age at={row.created} /> },
  ];
}
