/** What a terminal was told, and telling it more; each command is followed to its answer. */
import { useRef, useState } from "preact/hooks";
import { CommandReason, CommandState } from "../commands/state.tsx";
import { Age, Card, Empty, Field, Name, Problem } from "../parts/basics.tsx";
import { Json } from "../parts/json.tsx";
import { call, may, page } from "../shell/api.ts";
import { useDraft, useLive, useLoad, useSeldom, useSend } from "../shell/hooks.ts";
import { tell } from "../shell/toasts.tsx";
import { w as common } from "../words/common.ts";
import { t } from "../words/words.ts";
import { w } from "./words.ts";

const SETTLE_MS = 300;

export function Commands({ uid, isOnline }: { uid: string; isOnline: boolean }) {
  const { data, error, reload } = useLoad((abort) => page("get_command_list", { terminal_id: uid, page_size: 50 }, abort), [uid]);
  const soon = useSeldom(reload, SETTLE_MS);
  useLive({ kinds: ["command"], terminal_id: uid }, soon, soon);
  return (
    <div class="grid">
      {may("operator") && (
        <Card title={t(w.send)} class="span4">
          <Send uid={uid} isOnline={isOnline} onSent={reload} />
        </Card>
      )}
      <Card title={t(w.commands)} class="span8">
        {!!error && <Problem error={error} retry={reload} />}
        {data?.rows.length === 0 && <Empty title={t(w.noCommands)}>{t(w.noCommandsDo)}</Empty>}
        {!!data?.rows.length && (
          <ul class="messages">
            {data.rows.map((each) => (
              <li key={each.uid}>
                <span class="line">
                  <CommandState state={each.state} />
                  <span class="strong">
                    <Name text={each.command} /> <Name text={each.value} />
                  </span>
                  <span class="dim">
                    <Age at={each.queued} />
                  </span>
                  <span class="dim">
                    <CommandReason reason={each.reason} />
                  </span>
                </span>
                {each.answer !== null && <Json value={each.answer} />}
              </li>
            ))}
          </ul>
        )}
      </Card>
    </div>
  );
}

/** A key that makes a second click the same command. */
function newKey(): string {
  return Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) => byte.toString(16).padStart(2, "0")).join("");
}

function Send({ uid, isOnline, onSent }: { uid: string; isOnline: boolean; onSent: () => void }) {
  const [command, setCommand, forget] = useDraft(`command-${uid}`, "");
  const [value, setValue] = useState("");
  const key = useRef(newKey());
  const { send, isBusy, error } = useSend(async () => {
    await call("publish_terminal_command", { terminal_id: uid, command, value, idempotency_key: key.current });
    key.current = newKey();
    tell(t(w.sent));
    forget();
    setValue("");
    onSent();
  });
  return (
    <form class="form" onSubmit={send}>
      <Field label={t(w.command)} hint={t(w.commandHint)} required maxLength={64} value={command} onInput={(event) => setCommand(event.currentTarget.value)} />
      <Field label={t(common.value)} maxLength={1024} value={value} onInput={(event) => setValue(event.currentTarget.value)} />
      {!isOnline && <p class="dim">{t(w.awayNote)}</p>}
      {error !== undefined && <Problem error={error} />}
      <button class="primary" disabled={isBusy}>
        {t(isOnline ? common.send : w.sendAnyway)}
      </button>
    </form>
  );
}
