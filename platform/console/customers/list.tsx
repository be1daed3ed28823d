/** All customers: searched, sorted and paged by the platform. */
import { useState } from "preact/hooks";
import type { Result, RowOf } from "terrazzo-client";
import { Head, Name } from "../parts/basics.tsx";
import { NamedList } from "../parts/named-list.tsx";
import type { Column } from "../parts/table.tsx";
import { call, may, page } from "../shell/api.ts";
import { useAsked } from "../shell/hooks.ts";
import { titles } from "../shell/pages.ts";
import { go, link } from "../shell/routes.ts";
import { tell } from "../shell/toasts.tsx";
import { w as common } from "../words/common.ts";
import { t } from "../words/words.ts";
import { CustomerDialog } from "./form.tsx";
import { w } from "./words.ts";

type Row = RowOf<Result<"get_customer_list">>;

export function CustomerList() {
  const [isAdding, setAdding] = useState(false);
  useAsked("add", () => setAdding(may("admin")));
  const columns: Column<Row>[] = [
    { id: "name", title: t(common.name), sort: "name", width: 30, render: (row) => <a href={link(["customers", row.uid])}><Name text={row.name} /></a> },
    { id: "contact", title: t(w.contact), sort: "contact", width: 18, isMinor: true, render: (row) => <Name text={row.contact} /> },
    { id: "phone", title: t(w.phone), width: 15, isMinor: true, render: (row) => <Name text={row.phone || row.mobile} /> },
    { id: "email", title: t(w.email), width: 17, isMinor: true, render: (row) => <Name text={row.email} /> },
    { id: "city", title: t(w.city), sort: "city", width: 12, isMinor: true, render: (row) => <Name text={row.city} /> },
  ];
  return (
    <>
      <Head title={t(titles.customers)} />
      <NamedList<Row>
        label={t(titles.customers)}
        columns={columns}
        search={t(w.search)}
        searched={["name", "contact"]}
        read={(fields, abort) => page("get_customer_list", fields, abort)}
        tools={may("admin") && <button onClick={() => setAdding(true)}>{t(w.add)}</button>}
        none={[t(w.none), t(w.noneDo)]}
        removeAsk={t(w.removeAsk)}
        remove={(row) => call("delete_customer", { uid: row.uid })}
      />
      {isAdding && (
        <CustomerDialog
          customer={null}
          onClose={() => setAdding(false)}
          onDone={(uid) => {
            tell(t(w.saved));
            go(link(["customers", uid]));
          }}
        />
      )}
    </>
  );
}
