/** Sending a command, as every page does it: looked at before it is sent, sent once, held back while the terminal is away, followed to the answer. */
import type { ComponentChildren } from "preact";
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import type { Result, RowOf, Wanted } from "terrazzo-client";
import { Back } from "../parts/back.tsx";
import { Dialog, Field, Name, Problem, sinceText } from "../parts/basics.tsx";
import { page, session } from "../shell/api.ts";
import { useDraft } from "../shell/drafts.ts";
import { isSecondClick, useLive } from "../shell/hooks.ts";
import { w as common } from "../words/common.ts";
import { t } from "../words/words.ts";
import { CommandReason, CommandState } from "./state.tsx";
import { w } from "./words.ts";

type Journaled = RowOf<Result<"get_command_list">>;

/** Characters of a command and of a value that the platform takes. */
export const MOST_LETTERS = 64;
const READ = 100;

interface Props {
  title: string;
  /** What is typed here, as a name of its own, with the uid of what it goes to; null: it was typed before. */
  draft: string | null;
  /** What is sent: the question names it, and its value. */
  name: string;
  value: string;
  /** Whether the value is typed in the dialog, before the question. */
  isValueAsked?: boolean;
  /** What the value is now. */
  present?: ComponentChildren;
  isAway: boolean;
  /** In whose journals the command may stand. */
  terminals: readonly string[];
  /** The frames that tell of it. */
  frames: Wanted;
  /** Sends it; a second request with the same key sends nothing. */
  send: (value: string, key: string) => Promise<string[]>;
  onSent?: () => void;
  onClose: () => void;
}

type Step = "typing" | "checking" | "sending" | "following";

export function Sending(props: Props) {
  const { name, isAway } = props;
  const { value: typed, set, forget, isBack } = useDraft(`send ${props.draft ?? ""}`, { value: props.value, key: "" }, (all) => (props.draft === null ? undefined : all));
  const [ownKey] = useState(newKey);
  const { value } = typed;
  const [step, setStep] = useState<Step>(props.isValueAsked ? "typing" : "checking");
  const [isWaiting, setWaiting] = useState(false);
  const [error, setError] = useState<unknown>();
  const [uid, setUid] = useState("");
  const asked = useRef<HTMLParagraphElement>(null);
  const closing = useRef<HTMLButtonElement>(null);
  const isAsking = step === "checking" || step === "sending";
  useLayoutEffect(() => {
    // what had the focus is gone or can't be used any more; a key that is held down sends nothing
    if (step === "checking") asked.current?.focus();
    if (step === "following") closing.current?.focus();
  }, [step]);
  const send = async (): Promise<void> => {
    setStep("sending");
    setError(undefined);
    try {
      setUid((await props.send(value, typed.key || ownKey))[0] ?? "");
      forget();
      setStep("following");
      props.onSent?.();
    } catch (failure) {
      setError(failure);
      setStep("checking");
    }
  };
  const leave = (): void => {
    forget();
    props.onClose();
  };
  const submit = (event: Event): void => {
    event.preventDefault();
    if (step === "typing") setStep("checking");
    else if (step === "checking") void send();
  };
  return (
    <Dialog title={props.title} onClose={props.onClose}>
      <form class="form" onSubmit={submit}>
        {step === "typing" && <Back isBack={isBack} onAnew={forget} />}
        {step === "typing" && <Field label={t(w.newValue)} value={value} required maxLength={MOST_LETTERS} onInput={(event) => set({ value: event.currentTarget.value, key: newKey() })} />}
        {props.present}
        {isAsking && (
          <p class="strong" tabIndex={-1} ref={asked}>
            {value === "" ? t(w.reallyAlone, { name }) : t(w.really, { name, value })}
          </p>
        )}
        {isAway && step !== "following" && (
          <label class="line">
            <input type="checkbox" checked={isWaiting} onChange={(event) => setWaiting(event.currentTarget.checked)} />
            <span>
              {t(w.waitAnyway)} <span class="dim">{t(w.isAway)}</span>
            </span>
          </label>
        )}
        {isAsking && <p class="dim">{t(w.expiresIn, { time: sinceText(1_000 * (session.value?.command_expiry_s ?? 0)) })}</p>}
        {error !== undefined && <Problem error={error} />}
        {step === "following" && <Followed uid={uid} terminals={props.terminals} frames={props.frames} />}
        <footer>
          <button type="button" ref={closing} onClick={leave}>
            {step === "following" ? t(common.close) : t(common.cancel)}
          </button>
          {step !== "following" && (
            // the second click of two was meant for the button that was there before, and sends nothing
            <button class="primary" disabled={step === "sending" || (isAway && !isWaiting)} onClick={(event) => isSecondClick(event) && event.preventDefault()}>
              {step === "typing" ? t(w.check) : t(w.sendNow)}
            </button>
          )}
        </footer>
      </form>
    </Dialog>
  );
}

/** What makes a second request the same command. */
function newKey(): string {
  return Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) => byte.toString(16).padStart(2, "0")).join("");
}

function Followed({ uid, terminals, frames }: { uid: string; terminals: readonly string[]; frames: Wanted }) {
  const [state, setState] = useState<Pick<Journaled, "state" | "reason" | "expires" | "answer">>();
  const read = async (): Promise<void> => {
    for (const terminal of terminals) {
      const { rows } = await page("get_command_list", { terminal_id: terminal, page_size: READ });
      const found = rows.find((each) => each.uid === uid);
      if (found) return setState(found);
    }
  };
  const readAgain = (): void => void read().catch(() => undefined);
  useEffect(readAgain, [uid]);
  useLive(frames, ({ data }) => data["uid"] === uid && readAgain(), readAgain);
  return (
    <p class="line" role="status">
      <span class="dim">{t(w.result)}</span> {state ? <CommandState state={state.state} /> : t(common.loading)}
      {state && <CommandReason reason={state.reason} />}
      {state && ["queued", "sent"].includes(state.state) && (
        <span class="dim">
          {t(w.expires)} {state.expires}
        </span>
      )}
      {state && state.answer !== null && <Name mono text={JSON.stringify(state.answer)} />}
    </p>
  );
}
