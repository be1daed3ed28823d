/** What people wrote of an object: service records and offline data; operators write, change and remove them. */
import type { ComponentType } from "preact";
import { useEffect, useState } from "preact/hooks";
import { Age, Card, Name, Problem } from "../parts/basics.tsx";
import { may, pathPage } from "../shell/api.ts";
import { useLoad } from "../shell/hooks.ts";
import { route } from "../shell/routes.ts";
import { t } from "../words/words.ts";
import { Files } from "./files.tsx";
import type { ObjectItem } from "./object.tsx";
import { CollectDialog, ServiceDialog } from "./record-dialog.tsx";
import { categoryWord, w } from "./record-words.ts";
import { useShownFirst } from "./shown-first.ts";

export interface Service {
  id: number;
  name: string;
  description: string;
  category: string;
  staff_name: string;
  service_at: string;
}

export interface Collected {
  id: number;
  name: string;
  description: string;
  project_id: number;
  value: string;
  collector: string;
  collect_at: string;
}

const FIRST = 6;
const MORE = 50;
const MOST = 1_000;

export function Records({ row, onDone }: { row: ObjectItem; onDone: () => void }) {
  return (
    <>
      <Written<Service>
        row={row}
        kind="service"
        path="service/api/v1/service/getList"
        title={t(w.services)}
        none={t(w.noServices)}
        write={t(w.write)}
        Dialog={ServiceDialog}
        said={(each) => [categoryWord(each.category), each.name].filter(Boolean).join(": ")}
        by={(each) => each.staff_name}
        at={(each) => each.service_at}
      />
      <Written<Collected>
        row={row}
        kind="offline"
        path="offline/api/v1/collectos/getList"
        title={t(w.collected)}
        none={t(w.noCollected)}
        write={t(w.collect)}
        Dialog={CollectDialog}
        said={(each) => `${each.name} = ${each.value}`}
        by={(each) => each.collector}
        at={(each) => each.collect_at}
      />
      <Files row={row} onDone={onDone} />
    </>
  );
}

interface Props<R> {
  row: ObjectItem;
  /** As a link to one of them has it: `record=service-12`. */
  kind: string;
  path: string;
  title: string;
  none: string;
  write: string;
  Dialog: ComponentType<{ row: ObjectItem; record: R | null; onClose: () => void; onDone: () => void }>;
  said: (record: R) => string;
  by: (record: R) => string;
  at: (record: R) => string;
}

/** The newest records of a kind, each with who wrote it and when; older ones when asked for. */
function Written<R extends { id: number; description: string }>({ row, kind, path, title, none, write, Dialog, said, by, at }: Props<R>) {
  const [size, setSize] = useState(FIRST);
  const [open, setOpen] = useState<R | "new" | null>(null);
  const query = { where_and: JSON.stringify([["object_id", "=", row.id]]), page_size: String(size), order_by: '["id", "desc"]' };
  const found = useLoad((abort) => pathPage<R>(path, query, abort), [row.id, size]);
  const shown = found.data;
  const linked = useLinkedRecord<R>(kind, path, row.id);
  useEffect(() => {
    if (linked && may("operator")) setOpen(linked);
  }, [linked]);
  const rows = linked && shown && !shown.rows.some((each) => each.id === linked.id) ? [linked, ...shown.rows] : (shown?.rows ?? []);
  return (
    <Card class={`span4 record-${kind}`} title={title} more={may("operator") && <button class="small" onClick={() => setOpen("new")}>{write}</button>}>
      {open && <Dialog row={row} record={open === "new" ? null : open} onClose={() => setOpen(null)} onDone={found.reload} />}
      {found.error !== undefined && <Problem error={found.error} retry={found.reload} />}
      {shown && !shown.rows.length && <p class="dim">{none}</p>}
      <ul class="controls">
        {rows.map((each) => (
          <li key={each.id} aria-current={linked?.id === each.id || undefined}>
            <span>
              {may("operator") ? (
                <button class="link" onClick={() => setOpen(each)}>
                  <Name text={said(each)} />
                </button>
              ) : (
                <Name text={said(each)} />
              )}
              {each.description && (
                <span class="dim note">
                  <Name text={each.description} />
                </span>
              )}
            </span>
            <span class="dim">
              <Name text={by(each)} />
            </span>
            <span class="dim nowrap num">
              <Age at={at(each)} />
            </span>
          </li>
        ))}
      </ul>
      {shown && shown.total > shown.rows.length && size < MOST && (
        <p class="line">
          <button class="small" onClick={() => setSize((before) => Math.min(MOST, before === FIRST ? MORE : 2 * before))}>
            {t(w.older)}
          </button>
          <span class="dim">{t(w.shown, { shown: shown.rows.length, n: shown.total })}</span>
        </p>
      )}
    </Card>
  );
}

/** The record that a link names, when the page has it before one's eyes; null where none is named, or it is gone. */
function useLinkedRecord<R extends { id: number }>(kind: string, path: string, objectId: number): R | null {
  const asked = route.value.query.get("record") ?? "";
  const id = asked.startsWith(`${kind}-`) ? asked.slice(kind.length + 1) : "";
  const where_and = JSON.stringify([["object_id", "=", objectId], ["id", "=", Number(id)]]);
  const found = useLoad(async (abort) => (id ? ((await pathPage<R>(path, { where_and, page_size: "1" }, abort)).rows[0] ?? null) : null), [id, objectId]);
  useShownFirst(kind, !!id && found.data !== undefined);
  return found.data ?? null;
}
