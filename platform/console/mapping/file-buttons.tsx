/** A table from a file and to one. */
import { useRef, useState } from "preact/hooks";
import { keepFile } from "../charts/export.ts";
import { tell } from "../shell/toasts.tsx";
import { type Pair, t } from "../words/words.ts";
import { BadFile, readTable, writeCsv } from "./files.ts";
import type { Row } from "./rows.ts";
import { w } from "./words.ts";

const WHY: Record<BadFile["why"], Pair> = { json: w.badJson, quote: w.badQuote, rows: w.badRows, width: w.badWidth, large: w.badLarge };

export function FileButtons(props: { name: string; rows: readonly Row[]; widths: readonly number[]; isFixed: boolean; onRows: (rows: Row[]) => void }) {
  const { name, rows, widths, isFixed, onRows } = props;
  const input = useRef<HTMLInputElement>(null);
  const [wrong, setWrong] = useState("");
  const open = async (file: File): Promise<void> => {
    try {
      const read = readTable(await file.text(), widths);
      setWrong("");
      onRows(read);
      tell(t(w.opened, { n: read.length }));
    } catch (error) {
      if (!(error instanceof BadFile)) throw error;
      setWrong(t(WHY[error.why], { row: error.row, widths: widths.join(", ") }));
    }
  };
  return (
    <>
      {wrong && (
        <span class="is-bad" role="alert">
          {wrong}
        </span>
      )}
      {!isFixed && <button onClick={() => input.current?.click()}>{t(w.open)}</button>}
      <input
        ref={input}
        type="file"
        hidden
        accept=".json,.csv,application/json,text/csv"
        aria-label={t(w.open)}
        onChange={(event) => {
          const file = event.currentTarget.files?.[0];
          event.currentTarget.value = "";
          if (file) void open(file);
        }}
      />
      <button onClick={() => keepFile(new Blob([JSON.stringify(rows, null, 1)], { type: "application/json" }), `${name}.json`)}>{t(w.asJson)}</button>
      <button onClick={() => keepFile(new Blob([writeCsv(rows)], { type: "text/csv" }), `${name}.csv`)}>{t(w.asCsv)}</button>
    </>
  );
}
