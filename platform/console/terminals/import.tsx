/** Importing terminals: tried first, with each error at its cell; then all of it or nothing. */
import { useState } from "preact/hooks";
import type { Result } from "terrazzo-client";
import { Dialog, Field, Name, Problem } from "../parts/basics.tsx";
import { call } from "../shell/api.ts";
import { useDraft } from "../shell/hooks.ts";
import { tell } from "../shell/toasts.tsx";
import { w as common } from "../words/common.ts";
import { serverText } from "../words/server-text.ts";
import { t } from "../words/words.ts";
import { words as w } from "./bulk-words.ts";
import { type CsvTable, readCsv } from "./csv.ts";

const COLUMNS = "uid,name,type,config_id,mode,username,pin,access,tags";
const MOST_BYTES = 900_000;
const SHOWN = 30;

type Report = Required<Result<"import_terminals">>;

export function ImportDialog({ onClose, onDone }: { onClose: () => void; onDone: () => void }) {
  const [text, setText, forget] = useDraft("import-terminals", "");
  const [mode, setMode] = useState<"create" | "upsert">("create");
  const [report, setReport] = useState<Report | null>(null);
  const [error, setError] = useState<unknown>();
  const [isBusy, setBusy] = useState(false);
  const table = readCsv(text);
  const change = (next: string) => {
    setText(next);
    setReport(null);
    setError(undefined);
  };
  const send = async (isDry: boolean) => {
    setBusy(true);
    setError(undefined);
    try {
      const found = (await call("import_terminals", { rows: text, dry_run: isDry ? 1 : 0, mode })) as Report;
      setReport(found);
      if (isDry || found.failed) return;
      tell(t(w.importDone, { created: found.created, updated: found.updated }));
      forget();
      onDone();
    } catch (failure) {
      const told = reportOf(failure);
      if (told) setReport(told);
      else setError(failure);
    } finally {
      setBusy(false);
    }
  };
  const isFine = report !== null && !report.failed && report.dry_run;
  return (
    <Dialog title={t(w.importTitle)} onClose={onClose} class="broad">
      <form
        class="form"
        onSubmit={(event) => {
          event.preventDefault();
          void send(!isFine);
        }}
      >
        <p class="dim">{t(w.importHow)}</p>
        <p class="dim mono">{t(w.importColumns, { columns: COLUMNS })}</p>
        <Field label={t(w.importFile)}>
          <input type="file" accept=".csv,text/csv,text/plain" onChange={(event) => void event.currentTarget.files?.[0]?.slice(0, MOST_BYTES).text().then(change)} />
        </Field>
        <Field label={t(w.importRows)}>
          <textarea rows={7} value={text} maxLength={MOST_BYTES} spellcheck={false} onInput={(event) => change(event.currentTarget.value)} />
        </Field>
        <Field label={t(w.importMode)}>
          <select
            value={mode}
            onChange={(event) => {
              setMode(event.currentTarget.value as "create");
              setReport(null);
            }}
          >
            <option value="create">{t(w.importCreate)}</option>
            <option value="upsert">{t(w.importUpsert)}</option>
          </select>
        </Field>
        {error !== undefined && <Problem error={error} />}
        {report && <Outcome report={report} table={table} />}
        <footer>
          <button type="button" onClick={onClose}>
            {t(common.close)}
          </button>
          <button class="primary" disabled={isBusy || !table.rows.length}>
            {isFine ? t(w.importDo, { n: report.total }) : t(w.importTry)}
          </button>
        </footer>
      </form>
    </Dialog>
  );
}

/** A refused import carries its report as the result of the error. */
function reportOf(failure: unknown): Report | null {
  const result = failure instanceof Error && "result" in failure ? failure.result : null;
  return result && typeof result === "object" && "errors" in result ? (result as Report) : null;
}

function Outcome({ report, table }: { report: Report; table: CsvTable }) {
  const { total, created, updated, unchanged } = report;
  if (!report.failed) return <p role="status">{t(w.importFine, { total, created, updated, unchanged })}</p>;
  const more = report.errors.length - SHOWN + report.errors_omitted;
  return (
    <div role="alert">
      <p class="strong">{t(w.importBad, { n: report.errors.length + report.errors_omitted })}</p>
      <div class="scroll" tabIndex={0} role="region" aria-label={t(w.importWhy)}>
        <table>
          <thead>
            <tr>
              <th scope="col">{t(w.importLine)}</th>
              <th scope="col">{t(w.importColumn)}</th>
              <th scope="col">{t(common.value)}</th>
              <th scope="col">{t(w.importWhy)}</th>
            </tr>
          </thead>
          <tbody>
            {report.errors.slice(0, SHOWN).map((each, i) => (
              <tr key={i}>
                <td class="num">{each.row}</td>
                <td class="mono">{each.column || t(w.importWhole)}</td>
                <td>
                  <Name text={table.rows[table.lines.indexOf(each.row)]?.[each.column] ?? ""} />
                </td>
                <td>
                  <Name text={serverText(each.reason, each.told)} />
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      {more > 0 && <p class="dim">{t(w.importMore, { n: more })}</p>}
    </div>
  );
}
