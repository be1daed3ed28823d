/** A page that lists records by name: searched in the link, sorted, and removed one by one by administrators. */
import type { ComponentChildren } from "preact";
import type { Page } from "terrazzo-client";
import { may } from "../shell/api.ts";
import { replaceQuery, route } from "../shell/routes.ts";
import { w as common } from "../words/common.ts";
import { t } from "../words/words.ts";
import { Empty } from "./basics.tsx";
import { Removal } from "./forms.tsx";
import { endColumn, orderBy, RecordList, useDialogs } from "./list.tsx";
import type { Column } from "./table.tsx";

interface Named {
  uid: string;
  name: string;
}

/** What a page of the list is asked for with. */
export interface ListFields {
  page_index: number;
  page_size: number;
  where_or?: string[][];
  order_by?: string[];
}

interface Props<R extends Named> {
  label: string;
  columns: Column<R>[];
  /** Which list it is, where a page has several. */
  kind?: string;
  search: string;
  /** Fields that are looked through. */
  searched?: readonly string[];
  read: (fields: ListFields, abort: AbortSignal) => Promise<Page<R>>;
  /** Beside the search. */
  tools?: ComponentChildren;
  /** What is said where there is none. */
  none: readonly [title: string, todo: ComponentChildren];
  /** What goes with a record. */
  removeAsk: string;
  remove: (row: R) => Promise<unknown>;
}

export function NamedList<R extends Named>({ label, columns, kind = "", search, searched = ["name"], read, tools, none, removeAsk, remove }: Props<R>) {
  const { dialog, open, close, gone, turn } = useDialogs<R>();
  const text = route.value.query.get("search") ?? "";
  const ending = may("admin") ? [endColumn<R>(t(common.remove), (row) => t(common.removeNamed, { name: row.name.slice(0, 80) }), open)] : [];
  const where = text ? { where_or: searched.map((field) => [field, "like", `%${text}%`]) } : {};
  return (
    <>
      <RecordList<R>
        label={label}
        columns={[...columns, ...ending]}
        query={`${kind} ${text}`}
        order={{ field: "name", isDown: false }}
        read={(index, size, order, abort) => read({ page_index: index, page_size: size, ...where, ...orderBy(order) }, abort)}
        rowKey={(row) => row.uid}
        turn={turn}
        tools={
          <>
            <label class="grow">
              <span class="sr">{search}</span>
              <input type="search" placeholder={search} maxLength={64} value={text} onInput={(event) => replaceQuery({ search: event.currentTarget.value })} />
            </label>
            {tools}
          </>
        }
        empty={text ? <Empty title={t(common.nothing)}>{t(common.nothingDo)}</Empty> : <Empty title={none[0]}>{none[1]}</Empty>}
      />
      {dialog && <Removal name={dialog.name} text={removeAsk} remove={() => remove(dialog)} onDone={gone} onClose={close} />}
    </>
  );
}
