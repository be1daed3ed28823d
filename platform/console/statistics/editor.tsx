/** A script of statistics, calculations, balances or retainers as it is written: what is wrong stands at the cell that the platform names. */
import { useState } from "preact/hooks";
import { GatewayError } from "terrazzo-client";
import { Back } from "../parts/back.tsx";
import { Dialog, Field, Name, Problem } from "../parts/basics.tsx";
import { isNamed, Removal } from "../parts/forms.tsx";
import { page } from "../shell/api.ts";
import { useDraft } from "../shell/drafts.ts";
import { useLoad, useSend } from "../shell/hooks.ts";
import { w as common } from "../words/common.ts";
import { serverText } from "../words/server-text.ts";
import { t } from "../words/words.ts";
import { columnsOf, type Kind, newRow, remove, save, type Script, type Wrong, wrongOf } from "./scripts.ts";
import { w } from "./words.ts";

const FUNCTIONS = ["avg", "sum", "min", "max", "count", "delta", "first", "last", "duration(CODE==1)"];
const EXPLAINED = { statistics: w.statisticsAre, calculate: w.calculationsAre, balance: w.balancesAre, retainer: w.retainersAre };
const MOST_OBJECTS = 1_000;
const MOST_CELL = 2_000;

interface Props {
  script: Script;
  kind: Kind;
  onClose: () => void;
  onDone: (uid: string) => void;
  onRemoved: () => void;
}

export function ScriptEditor({ script, kind, onClose, onDone, onRemoved }: Props) {
  const { value: draft, set, forget, isBack } = useDraft(`script ${kind} ${script.uid || "new"}`, script);
  const [isRemoving, setRemoving] = useState(false);
  const { send, isBusy, error } = useSend(async () => {
    const uid = await save(kind, draft);
    forget();
    onDone(uid);
  });
  const change = (changes: Partial<Script>) => set((before) => ({ ...before, ...changes }));
  const cancel = (): void => {
    forget();
    onClose();
  };
  const wrong = error instanceof GatewayError ? wrongOf(error) : null;
  if (isRemoving) {
    return (
      <Removal
        name={script.name}
        text={t(kind === "retainer" ? w.removeRetainerAsk : w.removeAsk)}
        remove={() => remove(kind, script.uid)}
        onDone={onRemoved}
        onClose={() => setRemoving(false)}
      />
    );
  }
  return (
    <Dialog title={script.uid ? script.name : t(w.newScript)} class="broad" onClose={onClose}>
      <form class="form" onSubmit={send}>
        <Back isBack={isBack} onAnew={forget} />
        <Field label={t(common.name)} required maxLength={64} value={draft.name} autoFocus={!script.uid} onInput={(event) => change({ name: event.currentTarget.value })} />
        {kind === "balance" ? <BalanceFields draft={draft} error={error} onChange={change} /> : <Rows kind={kind} rows={draft.rows} wrong={wrong} onChange={(rows) => change({ rows })} />}
        <Objects kind={kind} chosen={draft.object_list} onChange={(object_list) => change({ object_list })} />
        {error !== undefined && !wrong && <Problem error={error} />}
        <footer>
          {script.uid && (
            <button type="button" class="danger apart" onClick={() => setRemoving(true)}>
              {t(common.remove)}
            </button>
          )}
          <button type="button" onClick={cancel}>
            {t(common.cancel)}
          </button>
          <button class="primary" disabled={isBusy}>
            {t(common.save)}
          </button>
        </footer>
      </form>
    </Dialog>
  );
}

interface RowsProps {
  kind: Kind;
  rows: string[][];
  wrong: Wrong | null;
  onChange: (rows: string[][]) => void;
}

function Rows({ kind, rows, wrong, onChange }: RowsProps) {
  const columns = columnsOf(kind);
  const set = (row: number, place: number, text: string) => onChange(rows.map((cells, i) => (i === row ? cells.map((cell, j) => (j === place ? text : cell)) : cells)));
  return (
    <div class="form">
      <p class="dim">{t(EXPLAINED[kind])}</p>
      <datalist id="script-functions">
        {FUNCTIONS.map((each) => (
          <option key={each} value={each} />
        ))}
      </datalist>
      <div class="scroll" tabIndex={0} role="region" aria-label={t(w.rows)}>
        <table class="script-rows">
          <thead>
            <tr>
              <th class="fit num">{"#"}</th>
              {columns.map((each) => (
                <th key={each.id} scope="col">
                  {t(each.title)}
                </th>
              ))}
              <th>
                <span class="sr">{t(w.removeRow)}</span>
              </th>
            </tr>
          </thead>
          <tbody>
            {rows.map((cells, i) => (
              <>
                <tr key={i}>
                  <td class="fit num dim">{i + 1}</td>
                  {columns.map((each, j) => (
                    <td key={each.id}>
                      <Cell name={t(w.cell, { column: t(each.title), n: i + 1 })} value={cells[j] ?? ""} isFunction={each.id === "function"} isWrong={isWrongAt(wrong, i, j)} onChange={(text) => set(i, j, text)} />
                    </td>
                  ))}
                  <td class="fit">
                    <button type="button" class="plain small" aria-label={t(w.removeRowN, { n: i + 1 })} onClick={() => onChange(rows.filter((_cells, at) => at !== i))}>
                      {"✕"}
                    </button>
                  </td>
                </tr>
                {wrong?.row === i && (
                  <tr class="of-row">
                    <td />
                    <td colSpan={columns.length + 1} class="is-wrong" role="alert">
                      {serverText(wrong.reason, wrong.told)}
                    </td>
                  </tr>
                )}
              </>
            ))}
          </tbody>
        </table>
      </div>
      <span>
        <button type="button" class="small" onClick={() => onChange([...rows, newRow(kind)])}>
          {t(w.addRow)}
        </button>
      </span>
    </div>
  );
}

/** Whether the cell is the wrong one; of a row that is wrong as a whole it is the first. */
function isWrongAt(wrong: Wrong | null, row: number, place: number): boolean {
  return wrong?.row === row && (wrong.place ?? 0) === place;
}

function Cell({ name, value, isFunction, isWrong, onChange }: { name: string; value: string; isFunction: boolean; isWrong: boolean; onChange: (text: string) => void }) {
  return (
    <input
      type="text"
      class="mono"
      aria-label={name}
      aria-invalid={isWrong || undefined}
      maxLength={MOST_CELL}
      value={value}
      {...((isFunction ? { list: "script-functions" } : {}) as object)}
      onInput={(event) => onChange(event.currentTarget.value)}
    />
  );
}

function BalanceFields({ draft, error, onChange }: { draft: Script; error: unknown; onChange: (changes: Partial<Script>) => void }) {
  const at = (field: string) => (isNamed(error, field) ? serverText((error as GatewayError).info, (error as GatewayError).reason) : "");
  const split = (text: string) => text.split(",").map((each) => each.trim());
  return (
    <>
      <p class="dim">{t(w.balancesAre)}</p>
      <Field label={t(w.target)} required maxLength={64} wrong={at("target_code")} value={draft.target} onInput={(event) => onChange({ target: event.currentTarget.value })} />
      <Field label={t(w.inputs)} required hint={t(w.inputsHint)} wrong={at("input_codes")} value={draft.inputs.join(", ")} onInput={(event) => onChange({ inputs: split(event.currentTarget.value) })} />
      <Field label={t(w.windowSeconds)} type="number" required min="1" wrong={at("window")} value={String(draft.windowS || "")} onInput={(event) => onChange({ windowS: Number(event.currentTarget.value) })} />
    </>
  );
}

function Objects({ kind, chosen, onChange }: { kind: Kind; chosen: string[]; onChange: (chosen: string[]) => void }) {
  const found = useLoad((abort) => page("get_object_list", { page_size: MOST_OBJECTS, order_by: ["name", "asc"] }, abort), []);
  const toggle = (id: string) => onChange(chosen.includes(id) ? chosen.filter((each) => each !== id) : [...chosen, id]);
  return (
    <fieldset class="objects-chosen">
      <legend>{t(w.objectsOf, { n: chosen.length })}</legend>
      {!chosen.length && <p class="dim">{t(kind === "calculate" ? w.objectsOfStatistics : w.objectsNone)}</p>}
      {found.error !== undefined && <Problem error={found.error} retry={found.reload} />}
      <ul>
        {found.data?.rows.map((each) => (
          <li key={each.id}>
            <label class="line">
              <input type="checkbox" checked={chosen.includes(String(each.id))} onChange={() => toggle(String(each.id))} />
              <Name text={each.name} />
            </label>
          </li>
        ))}
      </ul>
    </fieldset>
  );
}
