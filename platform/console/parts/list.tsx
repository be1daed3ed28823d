/** A list of records with what can be done at its head and in its rows: pages of operations are made of it. */
import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import type { Page } from "terrazzo-client";
import { tell } from "../shell/toasts.tsx";
import { link, route } from "../shell/routes.ts";
import { Card } from "./basics.tsx";
import { type Column, type Order, orderOf, Table } from "./table.tsx";
import { replaceQuery } from "../shell/routes.ts";

interface Props<R> {
  label: string;
  columns: Column<R>[];
  /** What else the rows depend on. */
  query?: string;
  read: (index: number, size: number, order: Order | null, abort: AbortSignal) => Promise<Page<R>>;
  rowKey: (row: R) => string;
  order?: Order;
  empty: ComponentChildren;
  tools?: ComponentChildren;
  turn: number;
}

/** The table, with the order kept in the link. */
export function RecordList<R>(props: Props<R>) {
  const query = route.value.query;
  const order = props.order ? orderOf(query, props.order) : null;
  return (
    <Card>
      {props.tools && <div class="tools">{props.tools}</div>}
      <Table
        label={props.label}
        columns={props.columns}
        query={`${props.query ?? ""}\n${order ? `${order.field} ${order.isDown}` : ""}`}
        read={(index, size, abort) => props.read(index, size, order, abort)}
        rowKey={props.rowKey}
        {...(order ? { order, onOrder: (next: Order) => replaceQuery({ sort: next.field, down: next.isDown ? "1" : "" }) } : {})}
        turn={props.turn}
        empty={props.empty}
      />
    </Card>
  );
}

/** The last column: the one thing that ends a row's record. `named` tells the button from those of other rows. */
export function endColumn<R>(title: string, named: (row: R) => string, onClick: (row: R) => void): Column<R> {
  return {
    id: "do",
    title,
    isTitleHidden: true,
    isNumber: true,
    render: (row) => (
      <button class="small" aria-label={named(row)} onClick={() => onClick(row)}>
        {title}
      </button>
    ),
  };
}

/** Which dialog is open, and reading the list again once it has done its work; `gone`: one that has told it itself. */
export function useDialogs<D>() {
  const [dialog, setDialog] = useState<D | null>(null);
  const [turn, setTurn] = useState(0);
  const again = () => setTurn((n) => n + 1);
  const close = () => setDialog(null);
  const done = (told: string) => {
    close();
    tell(told);
    again();
  };
  const gone = () => {
    close();
    again();
  };
  return { dialog, open: setDialog, close, done, gone, turn, again };
}

/** Tabs of a page; the first has the page's own address. */
export function Tabs({ label, base, tabs }: { label: string; base: string; tabs: readonly (readonly [id: string, title: string])[] }) {
  const shown = route.value.path[0] ?? "";
  const known = tabs.some(([id]) => id === shown);
  return (
    <nav class="tabs" aria-label={label}>
      {tabs.map(([id, title], i) => (
        <a key={id} href={link(i === 0 ? [base] : [base, id])} aria-current={id === shown || (i === 0 && !known) ? "page" : undefined}>
          {title}
        </a>
      ))}
    </nav>
  );
}

/** How the gateway takes an order. */
export function orderBy(order: Order | null): { order_by?: string[] } {
  return order ? { order_by: [order.field, order.isDown ? "desc" : "asc"] } : {};
}
