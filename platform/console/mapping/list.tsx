/** All mapping and control tables: searched, sorted and paged by the platform. */
import type { Result, RowOf } from "terrazzo-client";
import { Head, Name } from "../parts/basics.tsx";
import { Tabs } from "../parts/list.tsx";
import { NamedList } from "../parts/named-list.tsx";
import type { Column } from "../parts/table.tsx";
import { call, may, page, session } from "../shell/api.ts";
import { go, link, route } from "../shell/routes.ts";
import { tellError } from "../shell/toasts.tsx";
import { w as common } from "../words/common.ts";
import { t } from "../words/words.ts";
import type { TableKind } from "./editing.ts";
import { w } from "./words.ts";

type TableRow = Pick<RowOf<Result<"get_mapping_list">>, "uid" | "name" | "description" | "script" | "last_modified">;

export function TableList() {
  const kind: TableKind = route.value.path[0] === "control" ? "control" : "mapping";
  return (
    <>
      <Head title={t(w.title)} sub={t(kind === "mapping" ? w.mappingsAre : w.controlsAre)} />
      <Tabs
        label={t(w.title)}
        base="mapping"
        tabs={[
          ["mapping", t(w.mappings)],
          ["control", t(w.controls)],
        ]}
      />
      <Tables key={kind} kind={kind} />
    </>
  );
}

function Tables({ kind }: { kind: TableKind }) {
  const isMapping = kind === "mapping";
  const columns: Column<TableRow>[] = [
    { id: "name", title: t(common.name), sort: "name", width: 56, render: (row) => <a href={link(["mapping", kind, row.uid])}><Name text={row.name} /></a> },
    { id: "rows", title: t(w.rowCount), width: 12, isNumber: true, isMinor: true, render: (row) => (Array.isArray(row.script) ? row.script.length : 0) },
    { id: "changed", title: t(w.changed), sort: "last_modified", width: 20, isNumber: true, isMinor: true, render: (row) => <span class="dim">{row.last_modified}</span> },
  ];
  return (
    <NamedList<TableRow>
      label={t(isMapping ? w.mappings : w.controls)}
      columns={columns}
      kind={kind}
      search={t(w.search)}
      read={(fields, abort) => page(isMapping ? "get_mapping_list" : "get_control_list", fields, abort)}
      tools={may("admin") && <button onClick={() => void create(kind)}>{t(isMapping ? w.newMapping : w.newControl)}</button>}
      none={[t(isMapping ? w.noMappings : w.noControls), t(isMapping ? w.noMappingsDo : w.noControlsDo)]}
      removeAsk={t(isMapping ? w.removeMappingAsk : w.removeControlAsk)}
      remove={(row) => call(isMapping ? "delete_mapping" : "delete_control", { uid: row.uid })}
    />
  );
}

/** A new table, opened in the editor. */
export async function create(kind: TableKind): Promise<void> {
  const who = session.value?.id ?? 0;
  const fields = { script: "[]", created_by: who, last_modified_by: who, is_available: 1 };
  try {
    const made = kind === "mapping" ? await call("create_mapping", { name: t(w.newMapping), ...fields }) : await call("create_control", { name: t(w.newControl), ...fields });
    go(link(["mapping", kind, made.uid]));
  } catch (error) {
    tellError(error);
  }
}
