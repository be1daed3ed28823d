/** All customers: searched, sorted and paged by the platform. */
import type { Result, RowOf } from "terrazzo-client";
import { Empty, Head, Name } from "../parts/basics.tsx";
import { orderBy, RecordList, useDialogs } from "../parts/list.tsx";
import type { Column } from "../parts/table.tsx";
import { may, page } from "../shell/api.ts";
import { titles } from "../shell/pages.ts";
import { go, link, replaceQuery, route } from "../shell/routes.ts";
import { w as common } from "../words/common.ts";
import { t } from "../words/words.ts";
import { CustomerDialog } from "./form.tsx";
import { w } from "./words.ts";

type Row = RowOf<Result<"get_customer_list">>;

export function CustomerList() {
  const { dialog, open, close, done, turn } = useDialogs<"new">();
  const search = route.value.query.get("search") ?? "";
  const columns: Column<Row>[] = [
    { id: "name", title: t(common.name), sort: "name", width: 32, render: (row) => <a href={link(["customers", row.uid])}><Name text={row.name} /></a> },
    { id: "contact", title: t(w.contact), sort: "contact", width: 20, render: (row) => <Name text={row.contact} /> },
    { id: "phone", title: t(w.phone), width: 16, isMinor: true, render: (row) => <Name text={row.phone || row.mobile} /> },
    { id: "email", title: t(w.email), width: 18, isMinor: true, render: (row) => <Name text={row.email} /> },
    { id: "city", title: t(w.city), sort: "city", width: 14, isMinor: true, render: (row) => <Name text={row.city} /> },
  ];
  const where = search ? { where_or: [["name", "like", `%${search}%`], ["contact", "like", `%${search}%`]] } : {};
  return (
    <>
      <Head title={t(titles.customers)} />
      <RecordList
        label={t(titles.customers)}
        columns={columns}
        query={search}
        order={{ field: "name", isDown: false }}
        read={(index, size, order, abort) => page("get_customer_list", { page_index: index, page_size: size, ...where, ...orderBy(order) }, abort)}
        rowKey={(row) => row.uid}
        turn={turn}
        tools={
          <>
            <label class="grow">
              <span class="sr">{t(w.search)}</span>
              <input type="search" placeholder={t(w.search)} maxLength={64} value={search} onInput={(event) => replaceQuery({ search: event.currentTarget.value })} />
            </label>
            {may("admin") && <button onClick={() => open("new")}>{t(w.add)}</button>}
          </>
        }
        empty={<Empty title={t(search ? common.nothing : w.none)}>{t(search ? common.nothingDo : w.noneDo)}</Empty>}
      />
      {dialog && (
        <CustomerDialog
          customer={null}
          onClose={close}
          onDone={(uid) => {
            done(t(w.saved));
            go(link(["customers", uid]));
          }}
        />
      )}
    </>
  );
}
