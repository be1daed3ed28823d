/** All objects: searched, sorted and paged by the platform. */
import type { ComponentType } from "preact";
import { useEffect, useState } from "preact/hooks";
import type { RowOf, Result } from "terrazzo-client";
import { Empty, Head, Name, Problem, Tag } from "../parts/basics.tsx";
import { may, page, pathPage } from "../shell/api.ts";
import { useAsked, useLoad, useRested } from "../shell/hooks.ts";
import { link, replaceQuery, route } from "../shell/routes.ts";
import { w as common } from "../words/common.ts";
import { t } from "../words/words.ts";
import { ObjectDialog } from "./edit.tsx";
import { w as editing } from "./edit-words.ts";
import { Groups, groupsMeant, readGroups } from "./groups.tsx";
import { terminalsOf } from "./variables.ts";
import { w } from "./words.ts";

export type ObjectRow = RowOf<Result<"get_object_list">>;

interface Shown {
  rows: ObjectRow[];
  conditions: Readonly<Record<string, unknown>>;
  total: number;
  isCut: boolean;
}

const ROWS = 50;
const GROUP_MAX = 1000;
const REST_MS = 150;

export function ObjectList() {
  const { query } = route.value;
  const [text, setText] = useState(query.get("q") ?? "");
  const [isAdding, setAdding] = useState(false);
  useAsked("add", () => setAdding(may("admin")));
  const wanted = useRested(text, REST_MS);
  const group = query.get("group") ?? "";
  const isMap = query.get("view") === "map";
  const index = Math.max(1, Number(query.get("page") ?? 1) || 1);
  const order = query.get("sort") ?? "name asc";
  const groups = useLoad((abort) => readGroups(abort), []);
  const inside = group && groups.data ? groupsMeant(groups.data, group) : null;
  const found = useLoad((abort) => readObjects({ text: wanted, group, inside, index, order }, abort), [wanted, group, inside, index, order], 30_000);
  const type = (value: string): void => {
    setText(value);
    replaceQuery({ q: value || undefined, page: undefined });
  };
  const shown = found.data;
  return (
    <>
      <Head title={t(w.title)} sub={shown ? t(w.sub, { n: shown.total }) : ""}>
        <button onClick={() => replaceQuery({ view: isMap ? undefined : "map", at: undefined })}>{t(isMap ? w.list : w.map)}</button>
        {may("admin") && <button onClick={() => setAdding(true)}>{t(editing.add)}</button>}
      </Head>
      {isAdding && <ObjectDialog onClose={() => setAdding(false)} />}
      <div class="objects">
        <Groups groups={groups.data ?? []} shown={group} onDone={groups.reload} />
        <section class="card">
          <div class="tools">
            <label class="grow">
              <span class="sr">{t(w.search)}</span>
              <input type="search" value={text} placeholder={t(w.search)} onInput={(event) => type(event.currentTarget.value)} />
            </label>
          </div>
          {found.error !== undefined && <Problem error={found.error} retry={found.reload} />}
          {shown && !shown.rows.length && <Nothing isFiltered={!!wanted || !!group} />}
          {shown && shown.rows.length > 0 && (isMap ? <MapPart conditions={shown.conditions} /> : <Rows rows={shown.rows} order={order} />)}
          {shown?.isCut && <p class="dim">{t(w.cutGroup, { n: GROUP_MAX })}</p>}
          {shown && !isMap && <Pages total={shown.total} index={index} />}
        </section>
      </div>
    </>
  );
}

type MapType = ComponentType<{ conditions: Readonly<Record<string, unknown>> }>;

/** The map, loaded when it is first looked at. */
function MapPart({ conditions }: { conditions: Readonly<Record<string, unknown>> }) {
  const [Loaded, setLoaded] = useState<MapType | null>(null);
  const [error, setError] = useState<unknown>();
  useEffect(() => {
    import("./map.tsx").then((module) => setLoaded(() => module.ObjectMap), setError);
  }, []);
  if (error !== undefined) return <Problem error={error} />;
  return Loaded ? <Loaded conditions={conditions} /> : <p class="dim">{t(common.loading)}</p>;
}

interface Asked {
  text: string;
  group: string;
  /** The ids of the groups that are meant; null: not known yet. */
  inside: number[] | null;
  index: number;
  order: string;
}

async function readObjects({ text, group, inside, index, order }: Asked, abort: AbortSignal): Promise<Shown> {
  const [field = "name", direction = "asc"] = order.split(" ");
  const conditions: Record<string, unknown> = {};
  if (text) conditions["where_or"] = ["name", "model", "serial_no"].map((each) => [each, "like", `%${text}%`]);
  let isCut = false;
  if (group) {
    const ids = inside ?? groupsMeant(await readGroups(abort), group);
    if (!ids.length) return { rows: [], total: 0, isCut, conditions };
    const members = await pathPage<{ object_id: number }>(
      "object/api/v1/groupmap/getList",
      { where_in: JSON.stringify(["group_id", ids]), page_size: String(GROUP_MAX) },
      abort,
    );
    isCut = members.total > GROUP_MAX;
    if (!members.rows.length) return { rows: [], total: 0, isCut, conditions };
    conditions["where_in"] = ["id", [...new Set(members.rows.map((each) => each.object_id))]];
  }
  const found = await page("get_object_list", { ...conditions, order_by: [field, direction], page_index: index, page_size: ROWS }, abort);
  return { ...found, isCut, conditions };
}

function Nothing({ isFiltered }: { isFiltered: boolean }) {
  if (isFiltered) return <Empty title={t(common.nothing)}>{t(common.nothingDo)}</Empty>;
  return <Empty title={t(w.none)}>{t(w.noneDo)}</Empty>;
}

function Rows({ rows, order }: { rows: ObjectRow[]; order: string }) {
  return (
    <div class="scroll">
      <table>
        <thead>
          <tr>
            <Sorted field="name" order={order} title={t(common.name)} />
            <th>{t(common.state)}</th>
            <Sorted field="model" order={order} title={t(w.model)} />
            <th class="narrow-hide">{t(w.terminals)}</th>
            <Sorted field="city" order={order} title={t(w.place)} />
          </tr>
        </thead>
        <tbody>
          {rows.map((each) => (
            <tr key={each.id}>
              <td>
                <a href={link(["objects", String(each.id)])}>
                  <Name text={each.name} />
                </a>
              </td>
              <td class="nowrap">
                <Flags row={each} />
              </td>
              <td class="narrow-hide">
                <Name text={each.model} />
              </td>
              <td class="narrow-hide dim">
                <Name mono text={terminalsOf(each).slice(0, 3).join(", ")} />
              </td>
              <td class="narrow-hide">
                <Name text={[each.city, each.province].filter(Boolean).join(", ")} />
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

function Sorted({ field, order, title }: { field: string; order: string; title: string }) {
  const [by, direction] = order.split(" ");
  const isBy = by === field;
  const next = isBy && direction === "asc" ? "desc" : "asc";
  return (
    <th class={field === "name" ? "" : "narrow-hide"} aria-sort={isBy ? (direction === "asc" ? "ascending" : "descending") : undefined}>
      <button class="sort" onClick={() => replaceQuery({ sort: `${field} ${next}`, page: undefined })}>
        {title} {isBy ? (direction === "asc" ? "↑" : "↓") : ""}
      </button>
    </th>
  );
}

/** Online, running, label: a dot never says it alone. */
export function Flags({ row }: { row: Pick<ObjectRow, "is_online" | "is_boot" | "is_retainer"> }) {
  return (
    <span class="line flags">
      <span>
        <i class={`dot ${row.is_online ? "" : "off"}`} /> {row.is_online ? t(w.online) : t(w.offline)}
      </span>
      {!!row.is_online && <span class="dim">{row.is_boot ? t(w.running) : t(w.standing)}</span>}
      {!!row.is_retainer && <Tag kind="warn">{t(w.label)}</Tag>}
    </span>
  );
}

function Pages({ total, index }: { total: number; index: number }) {
  const last = Math.max(1, Math.ceil(total / ROWS));
  if (last === 1) return null;
  const to = (place: number): void => replaceQuery({ page: String(place) });
  return (
    <div class="line pages">
      <button class="small" disabled={index <= 1} onClick={() => to(index - 1)}>
        {t(common.previous)}
      </button>
      <span class="dim">{`${index} / ${last}`}</span>
      <button class="small" disabled={index >= last} onClick={() => to(index + 1)}>
        {t(common.next)}
      </button>
    </div>
  );
}
