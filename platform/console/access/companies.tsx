/** Companies, for super users: opening, closing, what they must hold to. */
import type { Fields, Result, RowOf } from "terrazzo-client";
import { Empty, Name, Tag } from "../parts/basics.tsx";
import { FormDialog, type FormField, type Values } from "../parts/forms.tsx";
import { orderBy, RecordList, useDialogs } from "../parts/list.tsx";
import type { Column } from "../parts/table.tsx";
import { call, page } from "../shell/api.ts";
import { useAsked } from "../shell/hooks.ts";
import { replaceQuery, route } from "../shell/routes.ts";
import { w as common } from "../words/common.ts";
import { t } from "../words/words.ts";
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
          title={dialog === "new" ? t(w.addCompany) : t(w.editCompany, { name: dialog.name.slice(0, 64) })}
          submit={t(common.save)}
          fields={fields()}
          initial={dialog === "new" ? { is_available: "1", retention_audit: "0", retention_events: "0" } : Object.fromEntries(Object.entries(dialog).map(([name, value]) => [name, String(value ?? "")]))}
          onSubmit={async (values) => {
            if (dialog === "new") await call("create_company", sent(values) as Fields<"create_company">);
            else await call("update_company", { ...sent(values), uid: dialog.uid } as Fields<"update_company">);
            done(t(w.saved));
          }}
          onClose={close}
        />
      )}
    </>
  );
}

function fields(): FormField[] {
  return [
    { name: "name", label: t(w.name), isRequired: true, most: 64 },
    { name: "contact", label: t(w.contact), most: 64 },
    { name: "email", label: t(w.email), kind: "email", most: 128 },
    { name: "phone", label: t(w.phone), most: 32 },
    { name: "retention_events", label: t(w.eventDays), kind: "number", least: 0, most: 36_500 },
    { name: "retention_audit", label: t(w.auditDays), kind: "number", least: 0, most: 36_500 },
    { name: "needs_second_factor", label: t(w.needsFactor), kind: "switch" },
    { name: "is_available", label: t(w.open), kind: "switch" },
  ];
}

function sent(values: Values): Record<string, unknown> {
  const isNumber = (name: string) => /^(is_|needs_|retention_)/.test(name);
  return Object.fromEntries(Object.entries(values).map(([name, value]) => [name, isNumber(name) ? Number(value || 0) : value]));
}
