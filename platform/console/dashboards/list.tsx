/** All dashboards: searched, sorted and paged by the platform. */
import type { Result, RowOf } from "terrazzo-client";
import { Empty, Head, Name } from "../parts/basics.tsx";
import { Ask } from "../parts/forms.tsx";
import { endColumn, orderBy, RecordList, useDialogs } from "../parts/list.tsx";
import type { Column } from "../parts/table.tsx";
import { call, may, page } from "../shell/api.ts";
import { go, link, replaceQuery, route } from "../shell/routes.ts";
import { tellError } from "../shell/toasts.tsx";
import { w as common } from "../words/common.ts";
import { t } from "../words/words.ts";
import { addPage } from "./record.ts";
import { w } from "./words.ts";

type Row = RowOf<Result<"get_dashboard_list">>;

export function DashboardList() {
  const { dialog, open, close, done, turn } = useDialogs<Row>();
  const search = route.value.query.get("search") ?? "";
  const columns: Column<Row>[] = [
    { id: "name", title: t(common.name), sort: "name", width: 52, render: (row) => <a href={link(["dashboards", row.uid])}><Name text={row.name} /></a> },
    { id: "category", title: t(w.category), sort: "category", width: 14, isMinor: true, render: (row) => <Name text={row.category} /> },
    { id: "changed", title: t(w.changed), sort: "last_modified", width: 20, isMinor: true, render: (row) => <span class="dim">{row.last_modified}</span> },
    ...(may("admin") ? [endColumn<Row>(t(common.remove), (row) => t(w.remove, { name: row.name.slice(0, 80) }), open)] : []),
  ];
  const where = search ? { where_and: [["name", "like", `%${search}%`]] } : {};
  return (
    <>
      <Head title={t(w.title)}>{may("admin") && <button onClick={() => void create()}>{t(w.create)}</button>}</Head>
      <RecordList
        label={t(w.title)}
        columns={columns}
        query={search}
        order={{ field: "name", isDown: false }}
        read={(index, size, order, abort) => page("get_dashboard_list", { page_index: index, page_size: size, ...where, ...orderBy(order) }, abort)}
        rowKey={(row) => row.uid}
        turn={turn}
        tools={
          <label class="grow">
            <span class="sr">{t(w.search)}</span>
            <input type="search" placeholder={t(w.search)} maxLength={64} value={search} onInput={(event) => replaceQuery({ search: event.currentTarget.value })} />
          </label>
        }
        empty={
          search ? (
            <Empty title={t(common.nothing)}>{t(common.nothingDo)}</Empty>
          ) : (
            <Empty title={t(w.none)}>
              {t(w.noneDo)} {!may("admin") && t(w.needAdmin)}
            </Empty>
          )
        }
      />
      {dialog && (
        <Ask
          title={t(w.remove, { name: dialog.name.slice(0, 64) })}
          text={t(w.removeAsk)}
          action={t(common.remove)}
          isDangerous
          onYes={async () => {
            await call("delete_dashboard", { uid: dialog.uid });
            done(t(w.removedNow));
          }}
          onClose={close}
        />
      )}
    </>
  );
}

async function create(): Promise<void> {
  try {
    const [script] = addPage({}, t(w.newPage, { n: 1 }));
    const { uid } = await call("create_dashboard", { name: t(w.newName), category: "pro", script: JSON.stringify(script) });
    go(link(["dashboards", uid], { edit: "1" }));
  } catch (error) {
    tellError(error);
  }
}
