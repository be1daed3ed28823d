/** Companies, for super users: opening, closing, what they must hold to. */
import type { Fields, Result, RowOf } from "terrazzo-client";
import { Empty, Name, Tag } from "../parts/basics.tsx";
import { FormDialog } from "../parts/forms.tsx";
import { orderBy, RecordList, useDialogs } from "../parts/list.tsx";
import type { Column } from "../parts/table.tsx";
import { call, page } from "../shell/api.ts";
import { useAsked } from "../shell/hooks.ts";
import { replaceQuery, route } from "../shell/routes.ts";
import { w as common } from "../words/common.ts";
import { t } from "../words/words.ts";
import { companyFields, companySent, companyValues } from "./company-fields.ts";
import { w } from "./words.ts";

type Company = RowOf<Result<"get_company_list">>;

export function Companies() {
  const { dialog, open, close, done, turn } = useDialogs<Company | "new">();
  useAsked("add", () => open("new"));
  const search = route.value.query.get("search") ?? "";
  const where = search ? { where_and: [["name", "like", `%${search}%`]] } : {};
  const columns: Column<Company>[] = [
    { id: "name", title: t(w.name), sort: "name", width: 28, render: (row) => <Name text={row.name} /> },
    { id: "contact", title: t(w.contact), width: 18, isMinor: true, render: (row) => <Name text={row.contact} /> },
    { id: "email", title: t(w.email), width: 20, isMinor: true, render: (row) => <Name text={row.email} /> },
    {
      id: "state",
      title: t(common.state),
      width: 20,
      render: (row) => (
        <span class="line">
          <Tag kind={row.is_available ? "good" : "warn"}>{t(row.is_available ? w.isOpen : w.closed)}</Tag>
          {!!row.needs_second_factor && <Tag kind="info">{t(w.factor)}</Tag>}
        </span>
      ),
    },
    {
      id: "do",
      title: t(common.edit),
      isTitleHidden: true,
      isNumber: true,
      render: (row) => (
        <button class="small" aria-label={`${t(common.edit)} ${row.name}`.slice(0, 100)} onClick={() => open(row)}>
          {t(common.edit)}
        </button>
      ),
    },
  ];
  return (
    <>
      <RecordList
        label={t(w.companies)}
        columns={columns}
        query={search}
        order={{ field: "name", isDown: false }}
        read={(index, size, order, abort) => page("get_company_list", { page_index: index, page_size: size, ...where, ...orderBy(order) }, abort)}
        rowKey={(row) => row.uid}
        turn={turn}
        empty={<Empty title={t(common.nothing)}>{t(common.nothingDo)}</Empty>}
        tools={
          <>
            <label class="grow">
              <span class="sr">{t(common.search)}</span>
              <input type="search" placeholder={t(common.search)} maxLength={64} value={search} onInput={(event) => replaceQuery({ search: event.currentTarget.value })} />
            </label>
            <button onClick={() => open("new")}>{t(w.addCompany)}</button>
          </>
        }
      />
      {dialog && (
        <FormDialog
          draft={`company ${dialog === "new" ? dialog : dialog.uid}`}
          title={dialog === "new" ? t(w.addCompany) : t(w.editCompany, { name: dialog.name.slice(0, 64) })}
          submit={t(common.save)}
          fields={companyFields()}
          initial={companyValues(dialog === "new" ? null : dialog)}
          onSubmit={async (values) => {
            if (dialog === "new") await call("create_company", companySent(values) as Fields<"create_company">);
            else await call("update_company", { ...companySent(values), uid: dialog.uid } as Fields<"update_company">);
            done(t(w.saved));
          }}
          onClose={close}
        />
      )}
    </>
  );
}
