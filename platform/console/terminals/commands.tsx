/** What a terminal was told, and telling it more; each command is followed to its answer. */
import { useState } from "preact/hooks";
import { MOST_LETTERS, Sending } from "../commands/sending.tsx";
import { CommandReason, CommandState } from "../commands/state.tsx";
import { w as sending } from "../commands/words.ts";
import { Age, Card, Empty, Field, Name, Problem } from "../parts/basics.tsx";
import { Json } from "../parts/json.tsx";
import { may, page, sendCommand } from "../shell/api.ts";
import { useDraft } from "../shell/drafts.ts";
import { useLive, useLoad, useSeldom } from "../shell/hooks.ts";
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

function Send({ uid, isOnline, onSent }: { uid: string; isOnline: boolean; onSent: () => void }) {
  const { value: typed, set, forget } = useDraft(`command ${uid}`, { command: "", value: "" });
  const { command, value } = typed;
  const [isAsked, setAsked] = useState(false);
  const [given, setGiven] = useState({ command: "", value: "" });
  const ask = (event: Event): void => {
    event.preventDefault();
    setGiven({ command: command.trim(), value });
    setAsked(true);
  };
  return (
    <>
      <form class="form" onSubmit={ask}>
        <Field label={t(w.command)} hint={t(w.commandHint)} required maxLength={MOST_LETTERS} value={command} onInput={(event) => set({ ...typed, command: event.currentTarget.value })} />
        <Field label={t(common.value)} maxLength={MOST_LETTERS} value={value} onInput={(event) => set({ ...typed, value: event.currentTarget.value })} />
        <button class="primary">{t(sending.check)}</button>
      </form>
      {isAsked && (
        <Sending
          draft={null}
          title={t(w.sendTo, { name: given.command, terminal: uid })}
          name={given.command}
          value={given.value}
          isAway={!isOnline}
          terminals={[uid]}
          frames={{ kinds: ["command"], terminal_id: uid }}
          send={(text, key) => sendCommand("publish_terminal_command", { terminal_id: uid, command: given.command, value: text, idempotency_key: key })}
          onSent={() => {
            forget();
            onSent();
          }}
          onClose={() => setAsked(false)}
        />
      )}
    </>
  );
}
