/** Importing terminals: tried first, with each error at its cell; then all of it or nothing. The dialog may be closed meanwhile. */
import { useEffect, useState } from "preact/hooks";
import { Dialog, Field, Name, Problem } from "../parts/basics.tsx";
import { hasSecrets } from "../parts/secrets.ts";
import { useDraft } from "../shell/drafts.ts";
import { bytesText, Progress } from "../shell/toasts.tsx";
import { works } from "../shell/work.ts";
import { w as common } from "../words/common.ts";
import { serverText } from "../words/server-text.ts";
import { t } from "../words/words.ts";
import { words as w } from "./bulk-words.ts";
import { readCsv } from "./csv.ts";
import { fileText } from "./file-text.ts";
import { chosenFile, counts, failure, forgetTried, isImporting, isShown, type Mode, runImport, tried, type Tried } from "./importing.ts";

const COLUMNS = "uid,name,type,config_id,mode,username,pin,access,tags";
const MOST_SHOWN = 100_000; // characters of a file that is shown as text
const MOST_TYPED = 900_000;
const SHOWN = 30;

export function ImportDialog({ onClose, onDone }: { onClose: () => void; onDone: () => void }) {
  const { value: text, set: setText, forget } = useDraft("import terminals", "", (rows) => (hasSecrets(rows) ? null : rows));
  const [mode, setMode] = useState<Mode>((tried.value?.report.mode as Mode | undefined) ?? "create");
  useEffect(() => {
    isShown.value = true;
    return () => void (isShown.value = false);
  }, []);
  const file = chosenFile.value;
  const change = (next: string) => {
    setText(next);
    chosenFile.value = null;
    forgetTried();
  };
  const take = async (chosen: File | undefined) => {
    if (!chosen) return;
    if (chosen.size <= MOST_SHOWN) return change(await fileText(chosen));
    chosenFile.value = chosen;
    forgetTried();
  };
  const choose = async (input: HTMLInputElement) => {
    await take(input.files?.[0]);
    input.value = ""; // the same file may be chosen again when it was mended
  };
  const found = tried.value;
  const isFine = !!found && !found.report.failed && found.report.dry_run;
  const send = async () => {
    if (!(await runImport(file ?? new Blob([text]), mode, !isFine))) return;
    forget();
    if (isShown.value) onDone();
  };
  return (
    <Dialog title={t(w.importTitle)} onClose={onClose} class="broad">
      <form
        class="form"
        onSubmit={(event) => {
          event.preventDefault();
          void send();
        }}
      >
        <p class="dim">{t(w.importHow)}</p>
        <p class="dim mono">{t(w.importColumns, { columns: COLUMNS })}</p>
        <span>
          <label class="button" aria-busy={isImporting.value}>
            {t(w.importFile)}
            <input class="sr" type="file" accept=".csv,.json,.jsonl,text/csv,text/plain,application/json" disabled={isImporting.value} onChange={(event) => void choose(event.currentTarget)} />
          </label>
        </span>
        {file ? (
          <p class="line">
            <span>{t(w.importLong, { name: file.name.slice(0, 80), size: bytesText(file.size) })}</span>
            <button type="button" class="small" disabled={isImporting.value} onClick={() => change("")}>
              {t(w.importOther)}
            </button>
          </p>
        ) : (
          <Field label={t(w.importRows)}>
            <textarea rows={7} value={text} maxLength={MOST_TYPED} readOnly={isImporting.value} spellcheck={false} onInput={(event) => change(event.currentTarget.value)} />
          </Field>
        )}
        <Field label={t(w.importMode)}>
          <select
            value={mode}
            disabled={isImporting.value}
            onChange={(event) => {
              setMode(event.currentTarget.value as Mode);
              forgetTried();
            }}
          >
            <option value="create">{t(w.importCreate)}</option>
            <option value="upsert">{t(w.importUpsert)}</option>
          </select>
        </Field>
        {failure.value !== undefined && <Problem error={failure.value} />}
        {isImporting.value ? <UnderWay /> : found && <Outcome {...found} />}
        <footer>
          <button type="button" onClick={onClose}>
            {t(common.close)}
          </button>
          <button class="primary" disabled={isImporting.value || !(file || readCsv(text).rows.length)}>
            {isFine ? t(w.importDo, { n: found.report.total }) : t(w.importTry)}
          </button>
        </footer>
      </form>
    </Dialog>
  );
}

/** How far it is; closing the dialog does not end it. */
function UnderWay() {
  const own = works.value.find(({ name }) => name === t(w.importTitle));
  return (
    <div class="form">
      {own && <Progress work={own} />}
      <p class="dim">{t(w.importLeave)}</p>
      {own && (
        <span>
          <button type="button" class="small" onClick={own.stop}>
            {t(common.stop)}
          </button>
        </span>
      )}
    </div>
  );
}

function Outcome({ report, table }: Tried) {
  if (!report.failed) return <p role="status">{t(w.importFine, counts(report))}</p>;
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
                  <Name text={table?.rows[table.lines.indexOf(each.row)]?.[each.column] ?? ""} />
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
