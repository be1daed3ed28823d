/** Commands of an object: shown before they are sent, sent once, followed to the terminal's answer. */
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import type { Result, RowOf } from "terrazzo-client";
import { CommandReason, CommandState } from "../commands/state.tsx";
import { Age, Card, Dialog, Field, Name, Problem, sinceText } from "../parts/basics.tsx";
import { call, may, page, sendCommand, session } from "../shell/api.ts";
import { useLive, useLoad } from "../shell/hooks.ts";
import { w as common } from "../words/common.ts";
import { keptReason } from "../words/kept-reasons.ts";
import { language, t } from "../words/words.ts";
import type { ObjectItem } from "./object.tsx";
import { type ObjectVariable, shownValue, terminalsOf, type Value } from "./variables.ts";
import { w } from "./words.ts";

type Journaled = RowOf<Result<"get_command_list">>;

/** A row of a control table. */
interface Control {
  code: string;
  name: string;
  point: string;
  value: string;
  /** The variable that is made of the same point: what it is now. */
  present: ObjectVariable | undefined;
}

const LAST = 5;

export function Commands({ row, variables }: { row: ObjectItem; variables: ObjectVariable[] }) {
  const [chosen, setChosen] = useState<Control | null>(null);
  const tables = useLoad(
    async (abort) => {
      if (!row.control_id) return null;
      const control = await call("get_control_item", { uid: row.control_id }, abort);
      const mapping = row.mapping_id ? await call("get_mapping_item", { uid: row.mapping_id }, abort) : null;
      return { control: control.script as string[][], mapping: (mapping?.script ?? []) as unknown[][] };
    },
    [row.control_id, row.mapping_id],
  );
  const found = tables.data;
  const controls = found ? found.control.map((each) => controlOf(each, found.mapping, variables)) : [];
  return (
    <Card class="span4" title={t(w.commands)}>
      {tables.error !== undefined && <Problem error={tables.error} retry={tables.reload} />}
      {found === null && <p class="dim">{t(w.noControl)}</p>}
      {!may("operator") && controls.length > 0 && <p class="dim">{t(common.needsRole, { role: t(common.operator) })}</p>}
      <ul class="controls">
        {controls.map((each) => (
          <li key={each.code}>
            <Name text={each.name} />
            <span class="dim">
              <Present control={each} />
            </span>
            {may("operator") && (
              <button class="small" onClick={() => setChosen(each)}>
                {t(common.send)}
              </button>
            )}
          </li>
        ))}
      </ul>
      <Last row={row} />
      {chosen && <Sending row={row} control={chosen} onClose={() => setChosen(null)} />}
    </Card>
  );
}

function controlOf(cells: string[], mapping: unknown[][], variables: ObjectVariable[]): Control {
  const [code = "", english = "", chinese = "", , point = "", value = ""] = cells.map(String);
  const code_ = mapping.find((each) => each.includes(point) && each[3] === "STA")?.[0];
  const [first, second] = language.value === "zh" ? [chinese, english] : [english, chinese];
  return { code, name: first || second || code, point, value, present: variables.find((each) => each.code === code_) };
}

function Present({ control }: { control: Control }) {
  const { present } = control;
  if (!present) return null;
  return <Name text={`${shownValue(present, present.value as Value)}${present.unit ? ` ${present.unit}` : ""}`} />;
}

function Last({ row }: { row: ObjectItem }) {
  const uid = terminalsOf(row)[0];
  const found = useLoad(
    async (abort) => {
      const lists = await Promise.all(terminalsOf(row).slice(0, 8).map((each) => page("get_command_list", { terminal_id: each, page_size: 20 }, abort)));
      const own = lists.flatMap((each) => each.rows).filter((each) => String(each.object_id) === String(row.id));
      return own.sort((a, b) => b.id - a.id).slice(0, LAST);
    },
    [row.id, uid],
  );
  useLive({ kinds: ["command"], object_id: String(row.id) }, found.reload, found.reload);
  if (!found.data?.length) return null;
  return (
    <>
      <h3>{t(w.lastCommands)}</h3>
      <ul class="controls">
        {found.data.map((each) => (
          <li key={each.uid}>
            <Name text={each.value ? `${each.command} = ${each.value}` : each.command} />
            <span class="dim">
              <Age at={each.queued} />
            </span>
            <State row={each} />
          </li>
        ))}
      </ul>
    </>
  );
}

function State({ row }: { row: Pick<Journaled, "state" | "reason"> }) {
  return (
    <span title={keptReason(row.reason, language.value) || undefined}>
      <CommandState state={row.state} />
    </span>
  );
}

type Step = "typing" | "checking" | "sending" | "following";

function Sending({ row, control, onClose }: { row: ObjectItem; control: Control; onClose: () => void }) {
  const [key] = useState(() => crypto.randomUUID()); // a second click with it sends nothing
  const [value, setValue] = useState(control.value);
  const [step, setStep] = useState<Step>("typing");
  const [isWaiting, setWaiting] = useState(false);
  const [error, setError] = useState<unknown>();
  const [uid, setUid] = useState("");
  const isAway = !row.is_online;
  const asked = useRef<HTMLParagraphElement>(null);
  const closing = useRef<HTMLButtonElement>(null);
  useLayoutEffect(() => {
    // what had the focus is gone or can't be used any more; a key that is held down sends nothing
    if (step === "checking") asked.current?.focus();
    if (step === "following") closing.current?.focus();
  }, [step]);
  const send = async (): Promise<void> => {
    setStep("sending");
    setError(undefined);
    try {
      const fields = { object_id: String(row.id), command: control.code, value: typed(value), idempotency_key: key };
      setUid((await sendCommand(fields))[0] ?? "");
      setStep("following");
    } catch (failure) {
      setError(failure);
      setStep("checking");
    }
  };
  const submit = (event: Event): void => {
    event.preventDefault();
    if (step === "typing") setStep("checking");
    else if (step === "checking") void send();
  };
  return (
    <Dialog title={t(w.sendTo, { name: control.name, object: row.name })} onClose={onClose}>
      <form class="form" onSubmit={submit}>
        {step === "typing" && <Field label={t(w.newValue)} value={value} required maxLength={256} onInput={(event) => setValue(event.currentTarget.value)} />}
        {control.present && (
          <p>
            <span class="dim">{t(w.present)}</span> <Present control={control} /> (<Age at={control.present.time} />)
          </p>
        )}
        {(step === "checking" || step === "sending") && <p class="strong" tabIndex={-1} ref={asked}>{t(w.really, { name: control.name, value })}</p>}
        {isAway && step !== "following" && (
          <label class="line">
            <input type="checkbox" checked={isWaiting} onChange={(event) => setWaiting(event.currentTarget.checked)} />
            <span>
              {t(w.waitAnyway)} <span class="dim">{t(w.isAway)}</span>
            </span>
          </label>
        )}
        {(step === "checking" || step === "sending") && <p class="dim">{t(w.expiresIn, { time: sinceText(1_000 * (session.value?.command_expiry_s ?? 0)) })}</p>}
        {error !== undefined && <Problem error={error} />}
        {step === "following" && <Followed row={row} uid={uid} />}
        <footer>
          <button type="button" ref={closing} onClick={onClose}>
            {step === "following" ? t(common.close) : t(common.cancel)}
          </button>
          {step !== "following" && (
            <button class="primary" disabled={step === "sending" || (isAway && !isWaiting)}>
              {step === "typing" ? t(w.check) : t(w.sendNow)}
            </button>
          )}
        </footer>
      </form>
    </Dialog>
  );
}

/** Numbers are sent as numbers. */
function typed(value: string): string | number {
  return value.trim() !== "" && Number.isFinite(Number(value)) ? Number(value) : value;
}

function Followed({ row, uid }: { row: ObjectItem; uid: string }) {
  const [state, setState] = useState<Pick<Journaled, "state" | "reason" | "expires"> & { answer?: unknown }>();
  const read = async (): Promise<void> => {
    for (const terminal of terminalsOf(row)) {
      const { rows } = await page("get_command_list", { terminal_id: terminal, page_size: 100 });
      const found = rows.find((each) => each.uid === uid);
      if (found) return setState(found);
    }
  };
  useEffect(() => void read().catch(() => undefined), [uid]);
  useLive({ kinds: ["command"], object_id: String(row.id) }, ({ data }) => data["uid"] === uid && void read().catch(() => undefined));
  return (
    <p class="line" role="status">
      <span class="dim">{t(w.result)}</span> {state ? <State row={state} /> : t(common.loading)}
      {state && <CommandReason reason={state.reason} />}
      {state && ["queued", "sent"].includes(state.state) && (
        <span class="dim">
          {t(w.expires)} {state.expires}
        </span>
      )}
      {state?.answer !== undefined && state.answer !== null && <Name mono text={JSON.stringify(state.answer)} />}
    </p>
  );
}
