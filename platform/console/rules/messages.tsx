/** Messages that were sent or wait to be, with what became of each. */
import type { Result, RowOf } from "terrazzo-client";
import { Empty, type Meaning, Name, Tag } from "../parts/basics.tsx";
import { RecordList } from "../parts/list.tsx";
import type { Column } from "../parts/table.tsx";
import { page } from "../shell/api.ts";
import { useTurns } from "../shell/hooks.ts";
import { replaceQuery, route } from "../shell/routes.ts";
import { w as common } from "../words/common.ts";
import { sentReason } from "../words/kept-reasons.ts";
import { language, type Pair, t } from "../words/words.ts";
import { CHANNELS } from "./form.ts";
import { w } from "./words.ts";

const EVERY_MS = 10_000; // no live frame tells of messages
type Message = RowOf<Result<"get_message_list">>;

const STATES: Record<string, { kind: Meaning; word: Pair }> = {
  queued: { kind: "info", word: w.queued },
  sending: { kind: "info", word: w.sending },
  sent: { kind: "good", word: w.sent },
  failed: { kind: "bad", word: w.failed },
  unknown: { kind: "warn", word: w.unknown },
};

export function Messages() {
  const turns = useTurns(EVERY_MS);
  const state = route.value.query.get("state") ?? "";
  const columns: Column<Message>[] = [
    { id: "created", title: t(w.when), width: 18, render: (row) => row.created.slice(0, 19) },
    { id: "channel", title: t(w.channel), width: 11, isMinor: true, render: (row) => t(CHANNELS.find(([value]) => value === row.channel)?.[1] ?? [row.channel, row.channel]) },
    { id: "to", title: t(w.to), width: 18, isMinor: true, render: (row) => <Name text={row.recipients.join(", ")} /> },
    { id: "text", title: t(w.text), width: 25, render: (row) => <Name text={textOf(row.content)} /> },
    { id: "state", title: t(common.state), width: 11, render: (row) => <Tag kind={STATES[row.state]?.kind ?? ""}>{t(STATES[row.state]?.word ?? w.unknown)}</Tag> },
    { id: "why", title: t(w.why), isOwnLine: true, render: (row) => <Name text={sentReason(row.reason, language.value) || (row.svc_msg && t(w.providerSaid, { text: row.svc_msg }))} /> },
  ];
  return (
    <RecordList
      label={t(w.messages)}
      columns={columns}
      query={state}
      read={(index, size, _, abort) => page("get_message_list", { page_index: index, page_size: size, ...(state ? { where_and: [["state", "=", state]] } : {}) }, abort)}
      rowKey={(row) => row.uid}
      turn={turns}
      tools={
        <select aria-label={t(common.state)} value={state} onChange={(event) => replaceQuery({ state: event.currentTarget.value })}>
          <option value="">{t(common.all)}</option>
          {Object.entries(STATES).map(([name, each]) => (
            <option key={name} value={name}>
              {t(each.word)}
            </option>
          ))}
        </select>
      }
      empty={<Empty title={t(w.noMessages)}>{t(w.noMessagesDo)}</Empty>}
    />
  );
}

/** The first text of a message, whatever its channel calls it. */
function textOf(content: unknown): string {
  const texts = Object.values((content ?? {}) as Record<string, unknown>).filter((each): each is string => typeof each === "string" && each !== "");
  return texts[0] ?? JSON.stringify(content ?? "");
}
