/** Rows that are edited in place, by keys too; what is wrong stands below its row. */
import { Fragment } from "preact";
import { useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { Empty } from "../parts/basics.tsx";
import { w as common } from "../words/common.ts";
import { serverText } from "../words/server-text.ts";
import { language, t } from "../words/words.ts";
import type { GridColumn } from "./columns.ts";
import { type Choice, completeCell, completed, completeExpression, type Completion } from "./complete.ts";
import { Completions } from "./completions.tsx";
import { cellText, insertRow, moveRow, pasteCells, removeRow, reshaped, type Row, withCell, type Wrong } from "./rows.ts";
import { w } from "./words.ts";

interface GridProps {
  label: string;
  columns: readonly GridColumn[];
  widths: readonly number[];
  rows: readonly Row[];
  wrong: readonly Wrong[];
  /** A value beside a row, such as what it is now. */
  values?: Readonly<Record<string, string>>;
  points: readonly Choice[];
  codes: readonly Choice[];
  make: () => Row;
  isFixed: boolean;
  onChange: (how: (rows: readonly Row[]) => readonly Row[], key?: string) => void;
}

const SHOWN = 100; // rows of a page
const WHOLE = 12; // letters that each cell has room for: of longer ones the whole is told where it is pointed at
const MOST_TOLD = 500;
const VALUE_AT = 3; // values stand behind code and labels

interface Typing {
  row: number;
  column: number;
  found: Completion;
  active: number;
  input: HTMLInputElement;
}

export function Grid(props: GridProps) {
  const { rows, wrong, values, isFixed } = props;
  const columns = useUsed(props.columns, rows);
  const [text, setText] = useState("");
  const [page, setPage] = useState(0);
  const [typing, setTyping] = useState<Typing | null>(null);
  const focus = useRef<[row: number, column: number] | null>(null);
  const body = useRef<HTMLTableSectionElement>(null);
  const kept = rows.map((row, index) => ({ row, index })).filter(({ row }) => matches(row, text));
  const pages = Math.max(1, Math.ceil(kept.length / SHOWN));
  const at = Math.min(page, pages - 1);
  const shown = kept.slice(at * SHOWN, (at + 1) * SHOWN);
  useLayoutEffect(() => {
    const wanted = focus.current;
    if (!wanted) return;
    const input = body.current?.querySelector<HTMLElement>(`[data-cell="${wanted[0]}:${wanted[1]}"]`);
    if (input) focus.current = null;
    input?.focus();
  });
  const act = useRef<Act>(null as unknown as Act);
  const turnTo = (index: number): void => {
    const place = kept.findIndex((each) => each.index === index);
    if (place < 0) setText(""); // a new row, or one that the filter hides
    setPage(Math.floor((place < 0 ? index : place) / SHOWN));
  };
  act.current = new Act({ ...props, columns }, { typing, setTyping, focus, turnTo });
  return (
    <>
      <div class="tools">
        <label class="grow">
          <span class="sr">{t(w.filter)}</span>
          <input type="search" value={text} placeholder={t(w.filter)} onInput={(event) => setText(event.currentTarget.value)} />
        </label>
        {wrong[0] && (
          <button class="small danger" onClick={() => act.current.go(wrong[0]?.row ?? 0, 0)}>
            {t(w.wrongCount, { n: new Set(wrong.map((each) => each.row)).size })} {t(w.goThere)}
          </button>
        )}
        {!isFixed && <button onClick={() => act.current.insert(rows.length - 1)}>{t(w.addRow)}</button>}
      </div>
      <div class="scroll grid-box" role="region" aria-label={props.label} tabIndex={0}>
        <table class="cells">
          <Heads columns={columns} hasForms={props.widths.length > 1} hasValues={!!values} isFixed={isFixed} />
          <tbody ref={body}>
            {shown.map(({ row, index }) => (
              <Line
                key={index}
                row={row}
                index={index}
                columns={columns}
                widths={props.widths}
                wrong={wrong.find((each) => each.row === index)}
                value={values ? (values[cellText(row[0]).trim()] ?? "") : undefined}
                isFixed={isFixed}
                open={typing?.row === index ? typing.column : -1}
                active={typing?.row === index ? typing.active : -1}
                act={act}
              />
            ))}
          </tbody>
        </table>
        {!rows.length && <Empty title={t(w.noRows)}>{!isFixed && t(w.noRowsDo)}</Empty>}
        {rows.length > 0 && !kept.length && <Empty title={t(common.nothing)}>{t(common.nothingDo)}</Empty>}
      </div>
      {pages > 1 && (
        <div class="line pages">
          <button class="small" disabled={at === 0} onClick={() => setPage(at - 1)}>
            {t(common.previous)}
          </button>
          <span class="dim">{`${at + 1} / ${pages}`}</span>
          <button class="small" disabled={at === pages - 1} onClick={() => setPage(at + 1)}>
            {t(common.next)}
          </button>
        </div>
      )}
      {typing && <Completions found={typing.found} active={typing.active} input={typing.input} onChoose={(choice) => act.current.take(choice)} />}
    </>
  );
}

/** The columns that some row has; the same list as long as these are the same. */
function useUsed(columns: readonly GridColumn[], rows: readonly Row[]): readonly GridColumn[] {
  const used = columns.filter((column) => rows.some((row) => column.place(row) !== null));
  return useMemo(() => used, [used.map((each) => each.id).join(" ")]);
}

function matches(row: Row, text: string): boolean {
  const wanted = text.trim().toLowerCase();
  return !wanted || row.some((cell) => cellText(cell).toLowerCase().includes(wanted));
}

interface GridState {
  typing: Typing | null;
  setTyping: (typing: Typing | null) => void;
  focus: { current: [number, number] | null };
  turnTo: (row: number) => void;
}

/** What one does in a cell. */
class Act {
  private readonly props: GridProps;
  private readonly state: GridState;

  constructor(props: GridProps, state: GridState) {
    this.props = props;
    this.state = state;
  }

  type(row: number, column: number, input: HTMLInputElement): void {
    this.write(row, column, input.value);
    this.suggest(row, column, input);
  }

  write(row: number, column: number, text: string): void {
    const { rows, columns, onChange } = this.props;
    const place = columns[column]?.place(rows[row] ?? []) ?? null;
    if (place !== null) onChange((now) => withCell(now, row, place, text), `${row}:${column}`);
  }

  suggest(row: number, column: number, input: HTMLInputElement): void {
    const how = this.props.columns[column]?.complete?.(this.props.rows[row] ?? []) ?? "none";
    const caret = input.selectionStart ?? input.value.length;
    const { codes, points } = this.props;
    const found = how === "points" ? completeCell(input.value, [...points, ...(this.isEvent(row) ? codes : [])]) : how === "expression" ? completeExpression(input.value, caret, codes) : null;
    this.state.setTyping(found?.choices.length ? { row, column, found, active: -1, input } : null);
  }

  private isEvent(row: number): boolean {
    return this.props.rows[row]?.[3] === "EVNT";
  }

  take(choice: Choice): void {
    const { typing, setTyping } = this.state;
    if (!typing) return;
    const { text, caret } = completed(typing.input.value, typing.found, choice);
    this.write(typing.row, typing.column, text);
    typing.input.value = text;
    typing.input.setSelectionRange(caret, caret);
    setTyping(null);
  }

  close(): void {
    this.state.setTyping(null);
  }

  go(row: number, column: number): void {
    this.state.focus.current = [row, column];
    this.state.turnTo(row);
    this.close();
  }

  insert(after: number): void {
    const { make, onChange } = this.props;
    onChange((rows) => insertRow(rows, after + 1, make()));
    this.go(after + 1, 0);
  }

  remove(row: number): void {
    this.props.onChange((rows) => removeRow(rows, row));
    this.go(Math.max(0, Math.min(row, this.props.rows.length - 2)), 0);
  }

  move(row: number, column: number, by: number): void {
    if (moveRow(this.props.rows, row, by) === this.props.rows) return;
    this.props.onChange((rows) => moveRow(rows, row, by));
    this.go(row + by, column);
  }

  reshape(row: number, width: number): void {
    this.props.onChange((rows) => rows.map((each, index) => (index === row ? reshaped(each, width) : each)));
  }

  paste(row: number, column: number, event: ClipboardEvent): void {
    const text = event.clipboardData?.getData("text/plain") ?? "";
    if (!/[\t\n]/.test(text.replace(/\r?\n$/, ""))) return;
    event.preventDefault();
    const { rows, columns, make, onChange } = this.props;
    const place = columns[column]?.place(rows[row] ?? []) ?? 0;
    onChange((now) => pasteCells(now, row, place, text, make));
  }

  onKey(row: number, column: number, event: KeyboardEvent): void {
    if (this.inList(event) || this.inRows(row, column, event)) {
      event.preventDefault();
      event.stopPropagation();
    }
  }

  private inList(event: KeyboardEvent): boolean {
    const { typing, setTyping } = this.state;
    if (!typing || event.altKey || event.ctrlKey) return false;
    const { choices } = typing.found;
    const step = event.key === "ArrowDown" ? 1 : event.key === "ArrowUp" ? -1 : 0;
    const choice = choices[typing.active];
    if (step) setTyping({ ...typing, active: (Math.max(typing.active, step > 0 ? -1 : 0) + step + choices.length) % choices.length });
    else if (event.key === "Escape") setTyping(null);
    else if (choice && (event.key === "Enter" || event.key === "Tab")) this.take(choice);
    else return false;
    return true;
  }

  private inRows(row: number, column: number, event: KeyboardEvent): boolean {
    const { rows } = this.props;
    const isMore = event.ctrlKey || event.metaKey;
    const by = event.key === "ArrowDown" ? 1 : event.key === "ArrowUp" ? -1 : 0;
    const isChoice = event.currentTarget instanceof HTMLSelectElement;
    if (by && event.altKey) this.move(row, column, by);
    else if (by && !isChoice && !isMore && rows[row + by]) this.go(row + by, column);
    else if (event.key === "Enter" && (isMore || row === rows.length - 1)) this.insert(row);
    else if (event.key === "Enter" && !isChoice) this.go(row + 1, column);
    else if (event.key === " " && isMore && event.currentTarget instanceof HTMLInputElement) this.suggest(row, column, event.currentTarget);
    else return false;
    return true;
  }
}

function Heads(props: { columns: readonly GridColumn[]; hasForms: boolean; hasValues: boolean; isFixed: boolean }) {
  return (
    <thead>
      <tr>
        <th scope="col" class="num">
          {t(w.number)}
        </th>
        {props.columns.map((column, at) => (
          <Fragment key={column.id}>
            {props.hasValues && at === VALUE_AT && (
              <th scope="col" class="num">
                {t(w.now)}
              </th>
            )}
            <th scope="col" style={{ minWidth: `${column.width}px` }}>
              {t(column.title)}
            </th>
          </Fragment>
        ))}
        {props.hasForms && (
          <th scope="col" class="form-cell">
            {t(w.form)}
          </th>
        )}
        {!props.isFixed && (
          <th scope="col">
            <span class="sr">{t(common.edit)}</span>
          </th>
        )}
      </tr>
    </thead>
  );
}

interface LineProps {
  row: Row;
  index: number;
  columns: readonly GridColumn[];
  widths: readonly number[];
  wrong: Wrong | undefined;
  value: string | undefined;
  isFixed: boolean;
  open: number;
  active: number;
  act: { current: Act };
}

/** A row; one that has not changed is not drawn again, however many there are. */
function Line(props: LineProps) {
  const { row, index, columns, widths, wrong, value, isFixed, open, active, act } = props;
  const wrongKey = wrong && `${wrong.place} ${wrong.reason}`;
  return useMemo(() => {
    const number = index + 1;
    const place = wrong?.place ?? null;
    const column = columns.find((each) => place !== null && each.place(row) === place);
    const problem = `wrong-${index}`;
    return (
      <>
        <tr class={wrong ? "has-wrong" : ""}>
          <td class="num dim">{number}</td>
          {columns.map((each, at) => (
            <Fragment key={each.id}>
              {value !== undefined && at === VALUE_AT && (
                <td class="num now">
                  <bdi title={value}>{value.length > 24 ? `${value.slice(0, 24)}…` : value}</bdi>
                </td>
              )}
              <td>
                <CellInput column={each} at={at} row={row} index={index} isFixed={isFixed} wrongId={column === each ? problem : ""} isOpen={open === at} active={active} act={act} />
              </td>
            </Fragment>
          ))}
          {widths.length > 1 && (
            <td>
              <select class="cell" aria-label={t(w.cell, { column: t(w.form), row: number })} value={String(row.length)} disabled={isFixed} onChange={(event) => act.current.reshape(index, Number(event.currentTarget.value))}>
                {widths.map((each) => (
                  <option key={each} value={String(each)}>
                    {each}
                  </option>
                ))}
              </select>
            </td>
          )}
          {!isFixed && (
            <td class="fit">
              <button class="plain small" aria-label={t(w.up, { row: number })} onClick={() => act.current.move(index, 0, -1)}>
                {"↑"}
              </button>
              <button class="plain small" aria-label={t(w.down, { row: number })} onClick={() => act.current.move(index, 0, 1)}>
                {"↓"}
              </button>
              <button class="plain small" aria-label={t(w.removeRow, { row: number })} onClick={() => act.current.remove(index)}>
                {"✕"}
              </button>
            </td>
          )}
        </tr>
        {wrong && (
          <tr class="wrong-line">
            <td />
            <td colSpan={columns.length + 3} id={problem}>
              <bdi>{column ? t(w.wrongAt, { row: number, column: t(column.title), reason: serverText(wrong.reason, wrong.told) }) : t(w.wrongRow, { row: number, reason: serverText(wrong.reason, wrong.told) })}</bdi>
            </td>
          </tr>
        )}
      </>
    );
  }, [row, index, columns, wrongKey, value, isFixed, open, active, language.value]);
}

interface CellProps {
  column: GridColumn;
  at: number;
  row: Row;
  index: number;
  isFixed: boolean;
  wrongId: string;
  isOpen: boolean;
  active: number;
  act: { current: Act };
}

function CellInput({ column, at, row, index, isFixed, wrongId, isOpen, active, act }: CellProps) {
  const place = column.place(row);
  if (place === null) return <span class="no-cell" aria-hidden="true" />;
  const text = cellText(row[place]);
  const same = {
    class: `cell ${wrongId ? "bad" : ""}`,
    "data-cell": `${index}:${at}`,
    "aria-label": t(w.cell, { column: t(column.title), row: index + 1 }),
    "aria-invalid": wrongId ? (true as const) : undefined,
    "aria-describedby": wrongId || undefined,
    disabled: isFixed,
    onKeyDown: (event: KeyboardEvent) => act.current.onKey(index, at, event),
  };
  if (column.options) {
    const options = column.options(row);
    return (
      <select {...same} title={options.find((each) => each.value === text)?.about} value={text} onChange={(event) => act.current.write(index, at, event.currentTarget.value)}>
        {!options.some((each) => each.value === text) && <option value={text}>{text}</option>}
        {options.map((each) => (
          <option key={each.value} value={each.value} title={each.about}>
            {each.text}
          </option>
        ))}
      </select>
    );
  }
  const list = column.complete && {
    role: "combobox" as const,
    "aria-autocomplete": "list" as const,
    "aria-expanded": isOpen,
    "aria-controls": isOpen ? "completions" : undefined,
    "aria-activedescendant": isOpen && active >= 0 ? `completion-${active}` : undefined,
  };
  return (
    <input
      {...same}
      {...list}
      title={text.length > WHOLE ? text.slice(0, MOST_TOLD) : undefined}
      value={text}
      maxLength={2_000}
      spellcheck={false}
      autocomplete="off"
      dir="auto"
      onInput={(event) => act.current.type(index, at, event.currentTarget)}
      onFocus={(event) => !text && column.complete?.(row) === "points" && act.current.suggest(index, at, event.currentTarget)}
      onBlur={() => act.current.close()}
      onPaste={(event) => act.current.paste(index, at, event)}
    />
  );
}
