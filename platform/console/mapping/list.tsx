/** All mapping and control tables: searched, sorted and paged by the platform. */
import type { Result, RowOf } from "terrazzo-client";
import { Empty, Head, Name } from "../parts/basics.tsx";
import { Ask } from "../parts/forms.tsx";
import { endColumn, orderBy, RecordList, Tabs, useDialogs } from "../parts/list.tsx";
import type { Column } from "../parts/table.tsx";
import { call, may, page, session } from "../shell/api.ts";
import { go, link, replaceQuery, route } from "../shell/routes.ts";
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
  const { dialog, open, close, done, turn } = useDialogs<TableRow>();
  const search = route.value.query.get("search") ?? "";
  const isMapping = kind === "mapping";
  const columns: Column<TableRow>[] = [
    { id: "name", title: t(common.name), sort: "name", width: 56, render: (row) => <a href={link(["mapping", kind, row.uid])}><Name text={row.name} /></a> },
    { id: "rows", title: t(w.rowCount), width: 12, isNumber: true, isMinor: true, render: (row) => (Array.isArray(row.script) ? row.script.length : 0) },
    { id: "changed", title: t(w.changed), sort: "last_modified", width: 20, isNumber: true, isMinor: true, render: (row) => <span class="dim">{row.last_modified}</span> },
    ...(may("admin") ? [endColumn<TableRow>(t(common.remove), (row) => t(w.removeNamed, { name: row.name.slice(0, 80) }), open)] : []),
  ];
  const where = search ? { where_and: [["name", "like", `%${search}%`]] } : {};
  return (
    <>
      <RecordList<TableRow>
        label={t(isMapping ? w.mappings : w.controls)}
        columns={columns}
        query={`${kind} ${search}`}
        order={{ field: "name", isDown: false }}
        read={(index, size, order, abort) => page(isMapping ? "get_mapping_list" : "get_control_list", { page_index: index, page_size: size, ...where, ...orderBy(order) }, abort)}
        rowKey={(row) => row.uid}
        turn={turn}
        tools={
          <>
            <label class="grow">
              <span class="sr">{t(w.search)}</span>
              <input type="search" placeholder={t(w.search)} maxLength={64} value={search} onInput={(event) => replaceQuery({ search: event.currentTarget.value })} />
            </label>
            {may("admin") && <button onClick={() => void create(kind)}>{t(isMapping ? w.newMapping : w.newControl)}</button>}
          </>
        }
        empty={search ? <Empty title={t(common.nothing)}>{t(common.nothingDo)}</Empty> : <Empty title={t(isMapping ? w.noMappings : w.noControls)}>{t(isMapping ? w.noMappingsDo : w.noControlsDo)}</Empty>}
      />
      {dialog && (
        <Ask
          title={t(w.removeNamed, { name: dialog.name.slice(0, 64) })}
          text={t(isMapping ? w.removeMappingAsk : w.removeControlAsk)}
          action={t(common.remove)}
          isDangerous
          onYes={async () => {
            await call(isMapping ? "delete_mapping" : "delete_control", { uid: dialog.uid });
            done(t(w.removedTable));
          }}
          onClose={close}
        />
      )}
    </>
  );
}

async function create(kind: TableKind): Promise<void> {
  const who = session.value?.id ?? 0;
  const fields = { script: "[]", created_by: who, last_modified_by: who, is_available: 1 };
  try {
    const made = kind === "mapping" ? await call("create_mapping", { name: t(w.newMapping), ...fields }) : await call("create_control", { name: t(w.newControl), ...fields });
    go(link(["mapping", kind, made.uid]));
  } catch (error) {
    tellError(error);
  }
}
