/** Terminals, as many as there are: the server searches, filters and sorts. */
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import type { Fields, Result, RowOf } from "terrazzo-client";
import { Age, Card, Empty, Head, Name, Tag } from "../parts/basics.tsx";
import { type Column, type Order, orderOf, Table } from "../parts/table.tsx";
import { may, page } from "../shell/api.ts";
import { clock } from "../shell/clock.ts";
import { useAsked, useLive, useLoad, useRested, useSeldom } from "../shell/hooks.ts";
import { titles } from "../shell/pages.ts";
import { link, replaceQuery, route } from "../shell/routes.ts";
import { w as common } from "../words/common.ts";
import { type Pair, t } from "../words/words.ts";
import { words as bulk } from "./bulk-words.ts";
import { Bulk, MOST_NAMED } from "./bulk.tsx";
import { ImportDialog } from "./import.tsx";
import { imported } from "./importing.ts";
import { Register } from "./register.tsx";
import { words as service } from "./service-words.ts";
import { w } from "./words.ts";

type Row = RowOf<Result<"get_terminal_list">>;

/** What terminals report of the configuration that is wanted, as the filter has it. */
export const COMPARED: Readonly<Record<string, Pair>> = { agrees: w.configConfirmed, differs: w.configDiffers, unreported: w.configUnreported };

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;
const REST_MS = 30;
const REST_TAG_MS = 200;
const SETTLE_MS = 5_000;
const FILTERS = ["search", "online", "refused", "out", "tag", "site", "config", "compared"];
const TAGGED = 1_000; // terminals whose tags are offered
const MOST_TAGS = 200;
const BY_UID: Order = { field: "uid", isDown: false };

function fieldsOf(query: URLSearchParams): Fields<"get_terminal_list"> {
  const text = query.get("search") ?? "";
  const like = `%${text}%`;
  const online = query.get("online");
  const order = orderOf(query, BY_UID);
  const [tag, site, config] = [query.get("tag"), query.get("site"), query.get("config")];
  const compared = query.get("compared") as Fields<"get_terminal_list">["configuration"] | null;
  return {
    ...(text ? { where_or: [["uid", "like", like], ["name", "like", like]] } : {}),
    ...(online === "silent" ? { silent_since: clock.ago(HOUR_MS), out_of_service: 0 } : online ? { online: Number(online) } : {}),
    ...(query.get("refused") ? { refused_after: clock.ago(DAY_MS) } : {}),
    ...(tag ? { tags: [tag] } : {}),
    ...(site ? { site } : {}),
    ...(config ? { where_and: [["config_id", "=", config]] } : {}),
    ...(compared ? { configuration: compared } : {}),
    ...(query.get("out") ? { out_of_service: 1 } : {}),
    order_by: [order.field, order.isDown ? "desc" : "asc"],
  };
}

function choosing(chosen: ReadonlySet<string>, toggle: (uid: string) => void): Column<Row>[] {
  if (!may("operator")) return [];
  const render = (row: Row) => <input type="checkbox" aria-label={t(bulk.choose, { name: (row.name || row.uid).slice(0, 80) })} checked={chosen.has(row.uid)} onChange={() => toggle(row.uid)} />;
  return [{ id: "choose", title: t(bulk.chooseTitle), isTitleHidden: true, width: 4, render }];
}

function columns(chosen: ReadonlySet<string>, toggle: (uid: string) => void): Column<Row>[] {
  return [
    ...choosing(chosen, toggle),
    { id: "name", title: t(common.name), sort: "name", width: 26, render: (row) => <a href={link(["terminals", row.uid])}><Name text={row.name || row.uid} /></a> },
    { id: "uid", title: t(w.uid), sort: "uid", width: 20, isMinor: true, render: (row) => <Name text={row.uid} mono /> },
    {
      id: "online",
      title: t(w.presence),
      sort: "online",
      width: 11,
      render: (row) => (
        <>
          <i class={`dot ${row.online ? "" : "off"}`} /> <span class={row.out_of_service ? "sr" : ""}>{t(row.online ? w.online : w.offline)}</span>
          {row.out_of_service && (
            <span title={`${t(service.only)}: ${row.out_of_service.reason}`}>
              <Tag kind="warn">{t(service.short)}</Tag>
            </span>
          )}
        </>
      ),
    },
    { id: "last_seen", title: t(w.lastSeen), sort: "last_seen", width: 9, isNumber: true, render: (row) => <Age at={row.last_seen} /> },
    { id: "type", title: t(w.type), sort: "type", width: 12, isMinor: true, render: (row) => <Name text={row.type} /> },
    { id: "mode", title: t(w.login), sort: "mode", width: 8, isMinor: true, render: (row) => <span class="dim">{row.mode}</span> },
    { id: "tags", title: t(w.tags), isMinor: true, render: (row) => (row.tags as string[]).map((tag) => <a key={tag} href={link(["terminals"], { tag })}><Tag><Name text={tag} /></Tag></a>) },
  ];
}

export function Terminals() {
  const query = route.value.query;
  const [text, setText] = useState(query.get("search") ?? "");
  const rested = useRested(text.trim(), REST_MS);
  const [total, setTotal] = useState<number | null>(null);
  const [turn, setTurn] = useState(0);
  const soon = useSeldom(() => setTurn((n) => n + 1), SETTLE_MS);
  useLive({ kinds: ["terminal"] }, soon, soon);
  useLayoutEffect(() => {
    if (rested !== (query.get("search") ?? "")) replaceQuery({ search: rested });
  }, [rested]);
  const [chosen, setChosen] = useState<ReadonlySet<string>>(new Set());
  const [dialog, setDialog] = useState<"import" | "add" | null>(null);
  useAsked("import", () => may("admin") && setDialog("import"));
  useAsked("add", () => may("admin") && setDialog("add"));
  const toggle = (uid: string) => {
    const next = new Set(chosen);
    if (!next.delete(uid) && next.size < MOST_NAMED) next.add(uid);
    setChosen(next);
  };
  const none = () => setChosen(new Set());
  const done = () => {
    none();
    setTurn((n) => n + 1);
  };
  const isFiltered = FILTERS.some((name) => query.get(name));
  return (
    <>
      <Head title={t(titles.terminals)} sub={total === null ? "" : t(w.count, { n: total })}>
        <a class="button" href={link(["terminals"], { unknown: "1" })}>
          {t(w.unknownOnes)}
        </a>
        <a class="button" href={link(["terminals"], { configurations: "1" })}>
          {t(w.configurations)}
        </a>
        {may("admin") && (
          <>
            <button onClick={() => setDialog("import")}>{t(bulk.importButton)}</button>
            <button onClick={() => setDialog("add")}>{t(bulk.create)}</button>
          </>
        )}
      </Head>
      {dialog === "import" && (
        <ImportDialog
          onClose={() => setDialog(null)}
          onDone={() => {
            setDialog(null);
            done();
          }}
        />
      )}
      {dialog === "add" && <Register onClose={() => setDialog(null)} />}
      <Card>
        <div class="tools" role="search">
          <label class="grow">
            <span class="sr">{t(w.search)}</span>
            <input type="search" maxLength={64} placeholder={t(w.search)} value={text} onInput={(event) => setText(event.currentTarget.value)} />
          </label>
          <select aria-label={t(w.presence)} value={query.get("online") ?? ""} onChange={(event) => replaceQuery({ online: event.currentTarget.value })}>
            <option value="">{t(w.any)}</option>
            <option value="1">{t(w.online)}</option>
            <option value="0">{t(w.offline)}</option>
            <option value="silent">{t(w.silentHour)}</option>
          </select>
          <label class="line">
            <input type="checkbox" checked={!!query.get("refused")} onChange={(event) => replaceQuery({ refused: event.currentTarget.checked ? "1" : "" })} />
            {t(w.refusedToday)}
          </label>
          <label class="line">
            <input type="checkbox" checked={!!query.get("out")} onChange={(event) => replaceQuery({ out: event.currentTarget.checked ? "1" : "" })} />
            {t(service.only)}
          </label>
          <TagField shown={query.get("tag") ?? ""} />
          <Narrowed query={query} />
        </div>
        <Bulk chosen={chosen} filter={fieldsOf(query)} total={total ?? 0} onNone={none} onDone={done} />
        <Table
          label={t(titles.terminals)}
          columns={columns(chosen, toggle)}
          query={[...FILTERS, "sort", "down"].map((name) => query.get(name) ?? "").join("\n")}
          read={(index, size, abort) => page("get_terminal_list", { ...fieldsOf(route.value.query), page_index: index, page_size: size }, abort)}
          rowKey={(row) => row.uid}
          order={orderOf(query, BY_UID)}
          onOrder={(order) => replaceQuery({ sort: order.field, down: order.isDown ? "1" : "" })}
          turn={turn + imported.value}
          onTotal={setTotal}
          empty={isFiltered ? undefined : <Empty title={t(w.none)}>{t(w.noneDo)}</Empty>}
        />
      </Card>
    </>
  );
}

/** A tag to filter by, with those that terminals have when it is asked for. */
function TagField({ shown }: { shown: string }) {
  const [isAsked, setAsked] = useState(false);
  const [text, setText] = useState(shown);
  const rested = useRested(text.trim(), REST_TAG_MS);
  const kept = useRef(shown);
  useEffect(() => {
    if (rested === kept.current) return;
    kept.current = rested;
    replaceQuery({ tag: rested });
  }, [rested]);
  useEffect(() => {
    if (shown === kept.current) return; // a link has chosen another one
    kept.current = shown;
    setText(shown);
  }, [shown]);
  const { data } = useLoad(async (abort) => (isAsked ? tagsOf((await page("get_terminal_list", { page_size: TAGGED }, abort)).rows) : []), [isAsked]);
  return (
    <label>
      <span class="sr">{t(w.tag)}</span>
      <input
        type="search"
        class="tag-field"
        list="terminal-tags"
        maxLength={64}
        placeholder={t(w.tag)}
        value={text}
        onFocus={() => setAsked(true)}
        onInput={(event) => setText(event.currentTarget.value)}
      />
      <datalist id="terminal-tags">
        {data?.map((tag) => (
          <option key={tag} value={tag} />
        ))}
      </datalist>
    </label>
  );
}

function tagsOf(rows: readonly Row[]): string[] {
  const all = rows.flatMap(({ tags }) => (Array.isArray(tags) ? tags.map(String) : []));
  return [...new Set(all)].sort().slice(0, MOST_TAGS);
}

/** What a link has narrowed the list to, each with the button that ends it. */
function Narrowed({ query }: { query: URLSearchParams }) {
  const compared = COMPARED[query.get("compared") ?? ""];
  const site = query.get("site");
  const chips: (readonly [names: string[], text: string])[] = [];
  if (site) chips.push([["site"], t(w.fromSite, { site: site.slice(0, 64) })]);
  if (query.get("config") || compared) chips.push([["config", "compared"], compared ? `${t(bulk.config)}: ${t(compared)}` : t(w.ofConfig)]);
  return chips.map(([names, text]) => (
    <button key={text} class="small" onClick={() => replaceQuery(Object.fromEntries(names.map((name) => [name, ""])))}>
      <bdi>{text}</bdi> {"✕"}
    </button>
  ));
}
