/** A table of any number of rows: the server pages, sorts and filters; only what is seen is in the document. */
import type { ComponentChildren } from "preact";
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import type { Page } from "terrazzo-client";
import { Unreachable } from "terrazzo-client";
import { healed, isReachable } from "../shell/api.ts";
import { useBusy } from "../shell/hooks.ts";
import { w } from "../words/common.ts";
import { t } from "../words/words.ts";
import { Empty, Problem } from "./basics.tsx";
import { pagesSeen, windowOf } from "./window.ts";

export interface Column<R> {
  id: string;
  title: string;
  render: (row: R) => ComponentChildren;
  /** The field that the server sorts by; without one it can't. */
  sort?: string;
  /** Of the table's width, in per cent. */
  width?: number;
  isNumber?: boolean;
  /** Said to who can't see the column, and not shown. */
  isTitleHidden?: boolean;
  /** Left out on a phone. */
  isMinor?: boolean;
  /** On a phone a line of its own below the others; a table has one such column at most. */
  isOwnLine?: boolean;
}

export interface Order {
  field: string;
  isDown: boolean;
}

const PAGE = 100;
const ROW_PX = 32;
const LINES_PX = 64; // of a row of two lines, on a phone
const OWN_LINE_PX = 92; // and of one with a third
const MOST_IN_LINE = 2; // columns that a phone shows beside each other
const NARROW = "(max-width: 820px)";
const AHEAD = 10;
const MOST_PAGES = 30;
const MARKED_BELOW = 0.3; // of the height

interface Props<R> {
  label: string;
  columns: Column<R>[];
  /** What the rows depend on: another text is another list. */
  query: string;
  read: (pageIndex: number, pageSize: number, abort: AbortSignal) => Promise<Page<R>>;
  rowKey: (row: R) => string;
  order?: Order;
  onOrder?: (order: Order) => void;
  empty?: ComponentChildren;
  /** Rises when the rows should be read again where they are. */
  turn?: number;
  onTotal?: (total: number) => void;
  /** A row that a link leads to, and at which place it is: scrolled to, and told from the others. */
  marked?: { key: string; at: number } | null | undefined;
}

export function Table<R>(props: Props<R>) {
  const { columns, query, turn = 0 } = props;
  const box = useRef<HTMLDivElement>(null);
  const [rows, setRows] = useState<ReadonlyMap<number, R[]>>(new Map());
  const [total, setTotal] = useState<number | null>(null);
  const [error, setError] = useState<unknown>();
  const hasOwn = columns.some((each) => each.isOwnLine);
  const hasLines = hasOwn || columns.filter((each) => !each.isMinor).length > MOST_IN_LINE;
  const rowPx = !hasLines || !matchMedia(NARROW).matches ? ROW_PX : hasOwn ? OWN_LINE_PX : LINES_PX;
  const [view, setView] = useState({ top: 0, height: 600 });
  const asked = useRef(new Set<number>());
  const list = useRef(0);
  const abort = useRef(new AbortController());
  const back = healed.value;
  useBusy(total === null && error === undefined);

  const ask = (index: number) => {
    if (asked.current.has(index)) return;
    asked.current.add(index);
    const mine = list.current;
    props.read(index + 1, PAGE, abort.current.signal).then(
      (page) => {
        if (mine !== list.current) return;
        setError(undefined);
        setTotal(page.total);
        props.onTotal?.(page.total);
        setRows((before) => {
          const next = new Map(before);
          next.delete(index);
          next.set(index, page.rows);
          while (next.size > MOST_PAGES) {
            const oldest = next.keys().next().value as number;
            next.delete(oldest);
            asked.current.delete(oldest);
          }
          return next;
        });
      },
      (failure: unknown) => {
        if (mine !== list.current) return;
        asked.current.delete(index);
        setError(failure);
      },
    );
  };

  useLayoutEffect(() => {
    // asked at once, not after the next frame: whoever types waits for it
    list.current += 1;
    abort.current.abort();
    abort.current = new AbortController();
    asked.current.clear();
    box.current?.scrollTo({ top: 0 });
    setRows(new Map());
    setTotal(null);
    ask(0);
    return () => abort.current.abort();
  }, [query]);

  useEffect(() => {
    if (!turn && !back) return;
    asked.current.clear();
    for (const index of pagesSeen(view.top, view.height, rowPx, PAGE)) ask(index);
  }, [turn, back]);

  useEffect(() => {
    if (isReachable.value && error instanceof Unreachable) for (const index of pagesSeen(view.top, view.height, rowPx, PAGE)) ask(index);
  }, [isReachable.value]);

  useEffect(() => {
    for (const index of pagesSeen(view.top, view.height, rowPx, PAGE)) if (total !== null && index * PAGE < total) ask(index);
  }, [view, total]);

  useEffect(() => {
    const node = box.current;
    if (!node) return;
    const look = () => setView({ top: node.scrollTop, height: node.clientHeight });
    const sizes = new ResizeObserver(look);
    sizes.observe(node);
    node.addEventListener("scroll", look, { passive: true });
    return () => {
      sizes.disconnect();
      node.removeEventListener("scroll", look);
    };
  }, []);

  const { marked } = props;
  useEffect(() => {
    if (marked && total !== null) box.current?.scrollTo({ top: Math.max(0, marked.at * rowPx - MARKED_BELOW * view.height) });
  }, [marked?.key, marked?.at, total === null]);

  const isPrinted = usePrinting();
  const { first, last } = windowOf(view.top, view.height, rowPx, total ?? 0, AHEAD);
  const shown = isPrinted ? allRead(rows) : Array.from({ length: last - first }, (_, i) => first + i);
  const at = (n: number) => rows.get(Math.floor(n / PAGE))?.[n % PAGE];
  const broad = broadest(columns);
  return (
    <div ref={box} class={`scroll window ${hasLines ? "lines" : ""} ${hasOwn ? "own" : ""}`} tabIndex={0} role="region" aria-label={props.label}>
      {!!error && <Problem error={error} retry={() => ask(pagesSeen(view.top, view.height, rowPx, PAGE)[0] ?? 0)} />}
      <table class={total === 0 ? "without-rows" : undefined} aria-rowcount={total === null ? -1 : total + 1}>
        <caption class="sr">{props.label}</caption>
        <thead>
          <tr aria-rowindex={1}>
            {columns.map((column) => (
              <HeadCell key={column.id} column={column} isBroad={column === broad} order={props.order} onOrder={props.onOrder} />
            ))}
          </tr>
        </thead>
        <tbody>
          <Gap px={first * rowPx} columns={columns.length} />
          {shown.map((n) => {
            const row = at(n);
            return (
              <tr key={row ? props.rowKey(row) : n} aria-rowindex={n + 2} aria-current={row && marked?.key === props.rowKey(row) ? "true" : undefined}>
                {columns.map((column) => (
                  <td key={column.id} class={classOf(column, column === broad)} data-title={column.isTitleHidden ? undefined : column.title}>
                    {row ? column.render(row) : <span class="dim">{"…"}</span>}
                  </td>
                ))}
              </tr>
            );
          })}
          <Gap px={((total ?? 0) - last) * rowPx} columns={columns.length} />
        </tbody>
      </table>
      {total !== null && <p class="printed dim">{t(w.printed, { n: shown.length, total })}</p>}
      {total === null && !error && <p class="dim">{t(w.loading)}</p>}
      {total === 0 && (props.empty ?? <Empty title={t(w.nothing)}>{t(w.nothingDo)}</Empty>)}
    </div>
  );
}

/** Whether the page is being printed. */
function usePrinting(): boolean {
  const [isPrinted, setPrinted] = useState(false);
  useEffect(() => {
    const media = matchMedia("print");
    const look = () => setPrinted(media.matches);
    const [begin, end] = [() => setPrinted(true), () => setPrinted(false)];
    media.addEventListener("change", look);
    addEventListener("beforeprint", begin); // the media say so only later
    addEventListener("afterprint", end);
    return () => {
      media.removeEventListener("change", look);
      removeEventListener("beforeprint", begin);
      removeEventListener("afterprint", end);
    };
  }, []);
  return isPrinted;
}

/** Where all rows stand that were read: paper can't be scrolled. */
function allRead<R>(rows: ReadonlyMap<number, R[]>): number[] {
  return [...rows.keys()].sort((one, other) => one - other).flatMap((page) => (rows.get(page) ?? []).map((_, i) => page * PAGE + i));
}

/** The height of rows that are not in the document. */
function Gap({ px, columns }: { px: number; columns: number }) {
  if (px <= 0) return null;
  return (
    <tr class="gap" aria-hidden="true">
      <td colSpan={columns} style={{ height: `${px}px` }} />
    </tr>
  );
}

function classOf<R>(column: Column<R>, isBroad: boolean): string {
  return `${column.isNumber ? "num" : ""} ${column.isMinor ? "narrow-hide" : ""} ${column.isOwnLine ? "own-line" : ""} ${isBroad ? "narrow-rest" : ""}`;
}

/** The column that gives way on a phone, so that all that are shown there fit. */
function broadest<R>(columns: readonly Column<R>[]): Column<R> | undefined {
  const texts = columns.filter((each) => !each.isMinor && !each.isOwnLine && !each.isNumber && each.width);
  return texts.sort((one, other) => (other.width ?? 0) - (one.width ?? 0))[0];
}

function HeadCell<R>(props: { column: Column<R>; isBroad: boolean; order: Order | undefined; onOrder: ((order: Order) => void) | undefined }) {
  const { column, isBroad, order, onOrder } = props;
  const field = column.sort;
  const isMine = field !== undefined && order?.field === field;
  const sorted = isMine ? (order.isDown ? "descending" : "ascending") : undefined;
  return (
    <th
      scope="col"
      aria-sort={sorted}
      class={classOf(column, isBroad)}
      style={column.width ? { width: `${column.width}%` } : undefined}
    >
      {field && onOrder ? (
        <button class="sort" onClick={() => onOrder({ field, isDown: isMine ? !order.isDown : false })}>
          {column.title} <span aria-hidden="true">{isMine ? (order.isDown ? "↓" : "↑") : ""}</span>
        </button>
      ) : (
        <span class={column.isTitleHidden ? "sr" : undefined}>{column.title}</span>
      )}
    </th>
  );
}

/** How many rows there are, and where the page reads the order from. */
export function orderOf(query: URLSearchParams, fallback: Order): Order {
  const field = query.get("sort");
  return field ? { field, isDown: query.get("down") === "1" } : fallback;
}
