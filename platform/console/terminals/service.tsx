/** Terminals out of service until a time, with a reason: nothing about them alarms meanwhile. */
import { useState } from "preact/hooks";
import type { Result } from "terrazzo-client";
import { Age, Name } from "../parts/basics.tsx";
import { FormDialog } from "../parts/forms.tsx";
import { call, may } from "../shell/api.ts";
import { tell, tellError } from "../shell/toasts.tsx";
import { t } from "../words/words.ts";
import { words as sw } from "./service-words.ts";

type Out = Result<"get_terminal_item">["out_of_service"];

const HOUR_MIN = 60;
const LENGTHS = [1, 2, 4, 8, 24, 72, 168, 720] as const;

/** Says until when and why terminals are out of service. */
export function ServiceDialog({ uids, onDone, onClose }: { uids: readonly string[]; onDone: () => void; onClose: () => void }) {
  const submit = async (values: Record<string, string>) => {
    const found = await call("put_out_of_service", { uids: [...uids], minutes: Number(values["hours"]) * HOUR_MIN, reason: values["reason"] ?? "" });
    tell(t(sw.isOut, { n: found.terminals }));
    onDone();
  };
  const options = LENGTHS.map((hours) => [String(hours), t(hours % 24 ? sw.hours : sw.days, { n: hours % 24 ? hours : hours / 24 })] as const);
  return (
    <FormDialog
      draft={`out-of-service ${uids.length === 1 ? uids[0] : "some"}`}
      title={`${t(sw.out)}: ${t(sw.terminals, { n: uids.length })}`}
      submit={t(sw.out)}
      fields={[
        { name: "hours", label: t(sw.length), kind: "choice", options, hint: t(sw.hint) },
        { name: "reason", label: t(sw.reason), isRequired: true, most: 255 },
      ]}
      initial={{ hours: "4" }}
      onSubmit={submit}
      onClose={onClose}
    />
  );
}

/** The button of a terminal that is in service. */
export function ServiceButton({ uid, onDone }: { uid: string; onDone: () => void }) {
  const [isOpen, setOpen] = useState(false);
  const done = () => {
    setOpen(false);
    onDone();
  };
  return (
    <>
      <button onClick={() => setOpen(true)}>{t(sw.out)}</button>
      {isOpen && <ServiceDialog uids={[uid]} onDone={done} onClose={() => setOpen(false)} />}
    </>
  );
}

/** Until when, why, and who said so; operators end it here. */
export function ServiceNote({ uid, out, onDone }: { uid: string; out: Exclude<Out, null>; onDone: () => void }) {
  const end = async () => {
    try {
      await call("put_into_service", { uids: [uid] });
      tell(t(sw.isBack));
    } catch (error) {
      tellError(error);
    }
    onDone();
  };
  return (
    <div class="banner" role="note">
      <span class="grow">
        <b>{t(sw.out)}</b> {t(sw.until, { time: out.until })} · <Name text={out.reason} /> · <Name text={out.by} />, <Age at={out.since} />
      </span>
      <span>{t(sw.hint)}</span>
      {may("operator") && <button onClick={() => void end()}>{t(sw.back)}</button>}
    </div>
  );
}
