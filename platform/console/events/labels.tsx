/** Open labels, the oldest first; whoever may, closes them. */
import { useState } from "preact/hooks";
import type { Result, RowOf } from "terrazzo-client";
import { Age, Card, Empty, Name } from "../parts/basics.tsx";
import { ExportButton } from "../parts/export.tsx";
import { Ask } from "../parts/forms.tsx";
import { type Column, Table } from "../parts/table.tsx";
import { call, may, page } from "../shell/api.ts";
import { clock } from "../shell/clock.ts";
import { useLive, useLoad, useSeldom } from "../shell/hooks.ts";
import { withObjectNames } from "../shell/object-names.ts";
import { link, route } from "../shell/routes.ts";
import { tell, tellError } from "../shell/toasts.tsx";
import { w as common } from "../words/common.ts";
import { t } from "../words/words.ts";
import { nameOf } from "./events.tsx";
import { w } from "./words.ts";

type Label = RowOf<Result<"get_open_retainer_list">> & { objectName: string };
const SETTLE_MS = 2_000;
const EXPORTED = ["id", "opened_at", "elapsed", "code", "label_en", "label_cn", "value", "object_id", "terminal_id"] as const;

const OLDEST = { order_by: ["opened_at", "asc"] };
const read = async (index: number, size: number, abort: AbortSignal) => withObjectNames(await page("get_open_retainer_list", { page_index: index, page_size: size, ...OLDEST }, abort), abort);
const closeOne = (label: Label) => call("close_retainer", { object_id: label.object_id, code: label.code, template_id: label.template_id });

const AT_ONCE = 100;
const MOST_READ = 10; // pages of labels that were opened in the same second

/** At which place of the list a label stands; those of the same second are looked through. */
async function placeOf({ id, opened_at }: { id: number; opened_at: string }, abort: AbortSignal): Promise<number> {
  const older = (await page("get_open_retainer_list", { where_and: [["opened_at", "<", opened_at]], page_size: 1 }, abort)).total;
  const first = Math.floor(older / AT_ONCE);
  for (let index = first; index < first + MOST_READ; index += 1) {
    const { rows } = await page("get_open_retainer_list", { page_index: index + 1, page_size: AT_ONCE, ...OLDEST }, abort);
    const found = rows.findIndex((each) => each.id === id);
    if (found >= 0) return index * AT_ONCE + found;
    if (rows.length < AT_ONCE) break;
  }
  return older;
}

/** The label of a link, and its place; nothing where it is closed, which is told. */
function useLinked(id: string) {
  const found = useLoad(
    async (abort) => {
      if (!id) return null;
      const label = await call("get_retainer_label_item", { id }, abort);
      if (label.close_at) return { key: id, at: 0, closed: label.close_at };
      return { key: id, at: await placeOf(label, abort), closed: "" };
    },
    [id],
  );
  return found.data ?? null;
}

export function Labels() {
  const linked = useLinked(route.value.query.get("label") ?? "");
  const [turn, setTurn] = useState(0);
  const [chosen, setChosen] = useState<ReadonlyMap<number, Label>>(new Map());
  const [isAsking, setAsking] = useState(false);
  const [closed, setClosed] = useState<number | null>(null);
  const again = () => setTurn((n) => n + 1);
  const soon = useSeldom(again, SETTLE_MS);
  useLive({ kinds: ["retainer"] }, soon, soon);
  const close = async (label: Label) => {
    try {
      await closeOne(label);
      tell(t(w.closed));
    } catch (error) {
      tellError(error);
    }
    again();
  };
  const closeChosen = async () => {
    let n = 0;
    setClosed(0);
    try {
      for (const label of chosen.values()) {
        await closeOne(label);
        setClosed(++n);
      }
      setChosen(new Map());
      setAsking(false);
      tell(t(w.closing, { n, total: n }));
    } finally {
      setClosed(null);
      again();
    }
  };
  const toggle = (label: Label) => {
    const next = new Map(chosen);
    if (!next.delete(label.id)) next.set(label.id, label);
    setChosen(next);
  };
  const choosing: Column<Label>[] = may("operator")
    ? [
        {
          id: "choose",
          title: t(w.chooseTitle),
          isTitleHidden: true,
          width: 4,
          render: (row) => <input type="checkbox" aria-label={t(w.chooseLabel, { name: nameOf(row).slice(0, 80) })} checked={chosen.has(row.id)} onChange={() => toggle(row)} />,
        },
      ]
    : [];
  const columns: Column<Label>[] = [
    ...choosing,
    { id: "name", title: t(w.label), width: 32, render: (row) => <Name text={nameOf(row)} /> },
    { id: "value", title: t(w.value), width: 12, isNumber: true, render: (row) => <Name text={row.value} /> },
    { id: "object", title: t(common.object), width: 25, isOwnLine: true, render: (row) => <a href={link(["objects", row.object_id])}><Name text={row.objectName || row.object_id} /></a> },
    { id: "since", title: t(w.since), width: 15, isNumber: true, render: (row) => <Age at={row.opened_at} /> },
    {
      id: "close",
      title: t(w.closeIt),
      isTitleHidden: true,
      isNumber: true,
      render: (row) =>
        may("operator") && (
          <button class="small" onClick={() => void close(row)}>
            {t(w.closeIt)}
          </button>
        ),
    },
  ];
  return (
    <Card>
      <div class="tools">
        {linked?.closed && <span class="grow" role="status">{t(w.labelClosed, { when: linked.closed.slice(0, 19) })}</span>}
        <ExportButton<Label> name={`labels-${clock.format(clock.now.value).slice(0, 10)}.csv`} columns={EXPORTED} read={read} />
      </div>
      {chosen.size > 0 && (
        <div class="bulk" role="toolbar" aria-label={t(w.chosen, { n: chosen.size })}>
          <span>{closed === null ? t(w.chosen, { n: chosen.size }) : t(w.closing, { n: closed, total: chosen.size })}</span>
          <button onClick={() => setAsking(true)}>{t(w.closeIt)}</button>
          <button class="plain" onClick={() => setChosen(new Map())}>
            {t(w.chooseNone)}
          </button>
        </div>
      )}
      {isAsking && <Ask title={t(w.closeChosen, { n: chosen.size })} text={t(w.closeAsk)} action={t(w.closeIt)} onYes={closeChosen} onClose={() => setAsking(false)} />}
      <Table
        label={t(w.openLabels)}
        columns={columns}
        query=""
        read={read}
        rowKey={(row) => String(row.id)}
        turn={turn}
        marked={linked?.closed ? null : linked}
        empty={<Empty title={t(w.noLabels)}>{t(w.noLabelsDo)}</Empty>}
      />
    </Card>
  );
}
