/** Records that people write: a dialog of fields, what is asked before something ends, what is shown once. */
import { useState } from "preact/hooks";
import { GatewayError } from "terrazzo-client";
import { upload } from "../shell/api.ts";
import { useDraft } from "../shell/drafts.ts";
import { isSecondClick, useSend } from "../shell/hooks.ts";
import { Progress, tell } from "../shell/toasts.tsx";
import { isStop, works } from "../shell/work.ts";
import { w as common } from "../words/common.ts";
import { t, words } from "../words/words.ts";
import { Back } from "./back.tsx";
import { Code, Dialog, Field, PasswordOf, Problem } from "./basics.tsx";
import { withoutSecrets } from "./secrets.ts";

const w = words({
  once: ["This is shown once, now: keep it where it is safe.", "仅显示这一次：请妥善保存。"],
  upload: ["Upload a file", "上传文件"],
  kept: ["I have kept it", "我已保存"],
});

export type Values = Record<string, string>;

export interface FormField {
  name: string;
  label: string;
  kind?: "text" | "password" | "number" | "email" | "url" | "choice" | "switch" | "long" | "upload";
  options?: readonly (readonly [value: string, label: string])[];
  isRequired?: boolean;
  most?: number;
  least?: number;
  hint?: string;
  /** Whether it is there, by what stands in the others; a field that is not is not required either. */
  isShown?: (values: Values) => boolean;
}

interface Props {
  title: string;
  /** What is typed here, as a name of its own: it is kept under it over a reload. With the uid of the record, or `new`. */
  draft: string;
  fields: readonly FormField[];
  initial?: Values;
  submit: string;
  onSubmit: (values: Values) => Promise<void>;
  onClose: () => void;
  /** What else can be done with the record. */
  more?: { title: string; onClick: () => void };
  /** Whose password is among the fields, where none of them says it. */
  username?: string;
}

/** Fields in a dialog; what is wrong stands at the field that the platform names. What is typed stays until it is sent or cancelled; closed by Escape it is there again. */
export function FormDialog({ title, draft, fields, initial = {}, submit, onSubmit, onClose, username, more }: Props) {
  const [first] = useState(initial);
  const { value: typed, set, forget, isBack } = useDraft<Values>(`form ${draft}`, {}, (all) => withoutSecrets(all, fields));
  const values = Object.fromEntries(fields.map((each) => [each.name, typed[each.name] ?? first[each.name] ?? firstOf(each)]));
  const { send, isBusy, error } = useSend(async () => {
    await onSubmit(values);
    forget();
  });
  const change = (name: string, value: string) => set((before) => ({ ...before, [name]: value }));
  const cancel = (): void => {
    forget();
    onClose();
  };
  return (
    <Dialog title={title} onClose={onClose}>
      <form class="form" onSubmit={send}>
        {username !== undefined && <PasswordOf username={username} />}
        <Back isBack={isBack} onAnew={forget} />
        {fields.filter((each) => !each.isShown || each.isShown(values)).map((each) => (
          <OneField key={each.name} field={each} value={values[each.name] ?? ""} isWrong={isNamed(error, each.name)} onChange={(value) => change(each.name, value)} />
        ))}
        {error !== undefined && <Problem error={error} />}
        <footer>
          {more && (
            <button type="button" class="danger apart" onClick={more.onClick}>
              {more.title}
            </button>
          )}
          <button type="button" onClick={cancel}>
            {t(common.cancel)}
          </button>
          <button class="primary" disabled={isBusy}>
            {submit}
          </button>
        </footer>
      </form>
    </Dialog>
  );
}

/** What a field has that nobody has chosen for; choices may come only when the dialog is open. */
function firstOf(field: FormField): string {
  if (field.kind === "switch") return "0";
  const options = field.kind === "choice" ? (field.options ?? []) : [];
  return options.some(([value]) => value === "") ? "" : (options[0]?.[0] ?? "");
}

/** Whether a refusal is about a field. */
export function isNamed(error: unknown, name: string): boolean {
  return error instanceof GatewayError && error.info.split("; ").some((each) => each.startsWith(`${name}:`));
}

function OneField({ field, value, isWrong, onChange }: { field: FormField; value: string; isWrong: boolean; onChange: (value: string) => void }) {
  if (field.kind === "switch") {
    return (
      <label class="line">
        <input type="checkbox" checked={value === "1"} onChange={(event) => onChange(event.currentTarget.checked ? "1" : "0")} />
        <span>
          {field.label} {field.hint && <span class="dim">{field.hint}</span>}
        </span>
      </label>
    );
  }
  if (field.kind === "upload") return <UploadField field={field} value={value} onChange={onChange} />;
  if (field.kind === "choice") {
    return (
      <Field label={field.label} hint={field.hint ?? ""}>
        <select value={value} aria-invalid={isWrong || undefined} onChange={(event) => onChange(event.currentTarget.value)}>
          {field.options?.map(([key, label]) => (
            <option key={key} value={key}>
              {label}
            </option>
          ))}
        </select>
      </Field>
    );
  }
  if (field.kind === "long") {
    return (
      <Field label={field.label} hint={field.hint ?? ""}>
        <textarea rows={4} value={value} maxLength={field.most ?? 4_096} required={!!field.isRequired} aria-invalid={isWrong || undefined} onInput={(event) => onChange(event.currentTarget.value)} />
      </Field>
    );
  }
  const isNumber = field.kind === "number";
  return (
    <Field
      label={field.label}
      hint={field.hint ?? ""}
      type={field.kind ?? "text"}
      autocomplete={field.kind === "password" ? "new-password" : "off"}
      required={!!field.isRequired}
      value={value}
      onInput={(event) => onChange(event.currentTarget.value)}
      {...(isNumber
        ? { ...(field.least === undefined ? {} : { min: String(field.least) }), ...(field.most === undefined ? {} : { max: String(field.most) }) }
        : { ...(field.least === undefined ? {} : { minLength: field.least }), maxLength: field.most ?? 255 })}
    />
  );
}

/** The uid of an uploaded file, or its address: typed, or uploaded here. */
function UploadField({ field, value, onChange }: { field: FormField; value: string; onChange: (value: string) => void }) {
  const [isBusy, setBusy] = useState(false);
  const [error, setError] = useState<unknown>();
  const take = async (file: File | undefined): Promise<void> => {
    if (!file) return;
    setBusy(true);
    setError(undefined);
    try {
      onChange((await upload(file)).uid);
    } catch (failure) {
      if (!isStop(failure)) setError(failure);
    } finally {
      setBusy(false);
    }
  };
  return (
    <div class="form">
      <Field label={field.label} hint={field.hint ?? ""} value={value} maxLength={field.most ?? 255} onInput={(event) => onChange(event.currentTarget.value)} />
      <span>
        <label class="button small" aria-busy={isBusy}>
          {t(w.upload)}
          <input class="sr" type="file" aria-label={`${t(w.upload)}: ${field.label}`} disabled={isBusy} onChange={(event) => void take(event.currentTarget.files?.[0])} />
        </label>
      </span>
      {isBusy && works.value.slice(-1).map((each) => <Progress key={each.id} work={each} />)}
      {error !== undefined && <Problem error={error} />}
    </div>
  );
}

interface AskProps {
  title: string;
  text: string;
  action: string;
  isDangerous?: boolean;
  onYes: () => Promise<void>;
  onClose: () => void;
}

/** Asks before something is done that can't be taken back. */
export function Ask({ title, text, action, isDangerous = false, onYes, onClose }: AskProps) {
  const { send, isBusy, error } = useSend(onYes);
  return (
    <Dialog title={title} onClose={onClose}>
      <p>{text}</p>
      {error !== undefined && <Problem error={error} />}
      <footer>
        <button onClick={onClose}>{t(common.cancel)}</button>
        <button class={isDangerous ? "danger" : "primary"} disabled={isBusy} onClick={(event) => !isSecondClick(event) && send(event)}>
          {action}
        </button>
      </footer>
    </Dialog>
  );
}

interface RemovalProps {
  name: string;
  /** In the place of "Remove" and the name. */
  title?: string;
  /** What goes with it. */
  text: string;
  remove: () => Promise<unknown>;
  onDone: () => void;
  onClose: () => void;
}

/** Asks before a record goes for good, and tells that it is gone. */
export function Removal({ name, title, text, remove, onDone, onClose }: RemovalProps) {
  const removeIt = async (): Promise<void> => {
    await remove();
    onDone();
    tell(t(common.removed));
  };
  return <Ask title={title ?? t(common.removeNamed, { name: name.slice(0, 64) })} text={text} action={t(common.remove)} isDangerous onYes={removeIt} onClose={onClose} />;
}

/** A secret that there is no second look at. */
export function ShownOnce({ title, text, onClose }: { title: string; text: string; onClose: () => void }) {
  return (
    <Dialog title={title} onClose={onClose} fixed>
      <p>{t(w.once)}</p>
      <Code text={text} label={title} />
      <footer>
        <button class="primary" onClick={onClose}>
          {t(w.kept)}
        </button>
      </footer>
    </Dialog>
  );
}
