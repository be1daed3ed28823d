/** All dashboards: searched, sorted and paged by the platform. */
import type { Result, RowOf } from "terrazzo-client";
import { Head, Name } from "../parts/basics.tsx";
import { NamedList } from "../parts/named-list.tsx";
import type { Column } from "../parts/table.tsx";
import { call, may, page } from "../shell/api.ts";
import { go, link } from "../shell/routes.ts";
import { tellError } from "../shell/toasts.tsx";
import { w as common } from "../words/common.ts";
import { t } from "../words/words.ts";
import { addPage } from "./record.ts";
import { categoryName, w } from "./words.ts";

type Row = RowOf<Result<"get_dashboard_list">>;

export function DashboardList() {
  const columns: Column<Row>[] = [
    { id: "name", title: t(common.name), sort: "name", width: 52, render: (row) => <a href={link(["dashboards", row.uid])}><Name text={row.name} /></a> },
    { id: "category", title: t(w.category), sort: "category", width: 14, isMinor: true, render: (row) => <Name text={categoryName(row.category)} /> },
    { id: "changed", title: t(w.changed), sort: "last_modified", width: 20, isMinor: true, render: (row) => <span class="dim">{row.last_modified}</span> },
  ];
  return (
    <>
      <Head title={t(w.title)}>{may("admin") && <button onClick={() => void create()}>{t(w.create)}</button>}</Head>
      <NamedList<Row>
        label={t(w.title)}
        columns={columns}
        search={t(w.search)}
        read={(fields, abort) => page("get_dashboard_list", fields, abort)}
        none={[t(w.none), `${t(w.noneDo)} ${may("admin") ? "" : t(w.needAdmin)}`]}
        removeAsk={t(w.removeAsk)}
        remove={(row) => call("delete_dashboard", { uid: row.uid })}
      />
    </>
  );
}

/** A new one, opened in the editor. */
export async function create(): Promise<void> {
  try {
    const [script] = addPage({}, t(w.newPage, { n: 1 }));
    const { uid } = await call("create_dashboard", { name: t(w.newName), category: "pro", script: JSON.stringify(script) });
    go(link(["dashboards", uid], { edit: "1" }));
  } catch (error) {
    tellError(error);
  }
}
