/** Commands of all terminals: those that wait can be recalled, those that expired or failed sent again. */
import { useState } from "preact/hooks";
import type { Fields, Page as Rows, Result, RowOf } from "terrazzo-client";
import { Age, Empty, Head, Name } from "../parts/basics.tsx";
import { Ask } from "../parts/forms.tsx";
import { RecordList, Tabs, useDialogs } from "../parts/list.tsx";
import type { Column } from "../parts/table.tsx";
import { call, may, page } from "../shell/api.ts";
import { useLive, useSeldom } from "../shell/hooks.ts";
import { withObjectNames } from "../shell/object-names.ts";
import { titles } from "../shell/pages.ts";
import { link, route } from "../shell/routes.ts";
import { w as common } from "../words/common.ts";
import { t } from "../words/words.ts";
import { CommandReason, CommandState } from "./state.tsx";
import { w } from "./words.ts";

type Command = RowOf<Result<"get_command_list">> & { objectName: string };
type States = NonNullable<Fields<"get_command_list">["states"]>;
type Doing = { kind: "recall"; uids: string[]; name: string } | { kind: "again"; row: Command };

const SETTLE_MS = 1_000;
const MOST_CHOSEN = 1_000;
const TABS: readonly { id: string; title: keyof typeof w; states: States; none: keyof typeof w; noneDo: keyof typeof w }[] = [
  { id: "waiting", title: "waitingTab", states: ["queued", "sent"], none: "noneWaits", noneDo: "noneWaitsDo" },
  { id: "expired", title: "expiredTab", states: ["expired", "failed"], none: "noneExpired", noneDo: "noneExpiredDo" },
  { id: "all", title: "allTab", states: [], none: "noneAtAll", noneDo: "noneAtAllDo" },
];

const named = (row: Command): string => `${row.command} ${row.terminal_id}`.slice(0, 100);

const read = async (states: States, index: number, size: number, abort: AbortSignal): Promise<Rows<Command>> =>
  withObjectNames(await page("get_command_list", { states, page_index: index, page_size: size }, abort), abort);

export function Page() {
  const shown = TABS.find((each) => each.id === route.value.path[0]) ?? TABS[0];
  return (
    <>
      <Head title={t(titles.commands)} />
      <Tabs label={t(titles.commands)} base="commands" tabs={TABS.map((each) => [each.id, t(w[each.title])] as const)} />
      {shown && <List key={shown.id} tab={shown} />}
    </>
  );
}

function List({ tab }: { tab: (typeof TABS)[number] }) {
  const { dialog, open, close, done, turn, again } = useDialogs<Doing>();
  const [chosen, setChosen] = useState<ReadonlySet<string>>(new Set());
  const soon = useSeldom(again, SETTLE_MS);
  useLive({ kinds: ["command"] }, soon, soon);
  const toggle = (uid: string) => {
    const next = new Set(chosen);
    if (!next.delete(uid) && next.size < MOST_CHOSEN) next.add(uid);
    setChosen(next);
  };
  const none = () => setChosen(new Set());
  const recall = async (uids: string[]) => {
    const { recalled, left } = await call("recall_commands", { uids });
    none();
    done(left.length ? t(w.recalledSome, { n: recalled.length, left: left.length }) : t(w.recalled, { n: recalled.length }));
  };
  return (
    <>
      {chosen.size > 0 && (
        <div class="bulk" role="toolbar" aria-label={t(w.chosen, { n: chosen.size })}>
          <span>{t(w.chosen, { n: chosen.size })}</span>
          <button onClick={() => open({ kind: "recall", uids: [...chosen], name: t(w.chosen, { n: chosen.size }) })}>{t(w.recall)}</button>
          <button class="plain" onClick={none}>
            {t(w.none)}
          </button>
        </div>
      )}
      <RecordList
        label={t(w[tab.title])}
        columns={columns(tab.id, chosen, toggle, open)}
        query={tab.id}
        read={(index, size, _, abort) => read(tab.states, index, size, abort)}
        rowKey={(row) => row.uid}
        turn={turn}
        empty={<Empty title={t(w[tab.none])}>{t(w[tab.noneDo])}</Empty>}
      />
      {dialog?.kind === "recall" && (
        <Ask title={t(w.recallNamed, { name: dialog.name })} text={t(w.recallAsk)} action={t(w.recall)} isDangerous onYes={() => recall(dialog.uids)} onClose={close} />
      )}
      {dialog?.kind === "again" && (
        <Ask
          title={t(w.againNamed, { name: dialog.row.command.slice(0, 64) })}
          text={t(w.againAsk, { command: dialog.row.command.slice(0, 64), value: dialog.row.value.slice(0, 64), to: (dialog.row.objectName || dialog.row.terminal_id).slice(0, 64) })}
          action={t(common.send)}
          onYes={async () => {
            await sendAgain(dialog.row);
            done(t(w.againDone));
          }}
          onClose={close}
        />
      )}
    </>
  );
}

/** The same command once more, by the way that it came; asked for twice, it is sent once. */
async function sendAgain(row: Command): Promise<void> {
  const { command, value } = row;
  const fields = { command, value, idempotency_key: `again-${row.uid}` };
  if (row.object_id) await call("publish_object_command", { ...fields, object_id: row.object_id });
  else await call("publish_terminal_command", { ...fields, terminal_id: row.terminal_id });
}

function columns(tab: string, chosen: ReadonlySet<string>, toggle: (uid: string) => void, open: (doing: Doing) => void): Column<Command>[] {
  const isWaiting = tab === "waiting";
  const choosing: Column<Command>[] =
    isWaiting && may("operator")
      ? [
          {
            id: "choose",
            title: t(w.chooseTitle),
            isTitleHidden: true,
            width: 4,
            render: (row) => <input type="checkbox" aria-label={t(w.choose, { name: named(row) })} checked={chosen.has(row.uid)} onChange={() => toggle(row.uid)} />,
          },
        ]
      : [];
  return [
    ...choosing,
    { id: "state", title: t(common.state), width: 10, render: (row) => <CommandState state={row.state} /> },
    { id: "command", title: t(w.command), width: 16, render: (row) => <What row={row} /> },
    { id: "to", title: t(common.object), width: 22, isMinor: true, render: (row) => row.object_id && <a href={link(["objects", row.object_id])}><Name text={row.objectName || row.object_id} /></a> },
    { id: "terminal", title: t(common.terminal), width: 15, render: (row) => <a href={link(["terminals", row.terminal_id], { tab: "commands" })}><Name text={row.terminal_id} mono /></a> },
    { id: "queued", title: t(w.queuedAt), width: 8, isNumber: true, isMinor: true, render: (row) => <Age at={row.queued} /> },
    isWaiting
      ? { id: "expires", title: t(w.expires), width: 15, isNumber: true, isOwnLine: true, render: (row) => row.expires.slice(0, 16) }
      : { id: "outcome", title: t(w.outcome), width: 20, isOwnLine: true, render: (row) => (row.answer === null ? <CommandReason reason={row.reason} /> : <Name text={JSON.stringify(row.answer)} mono />) },
    { id: "do", title: t(isWaiting ? w.recall : w.again), isTitleHidden: true, isNumber: true, render: (row) => may("operator") && <Do row={row} open={open} /> },
  ];
}

/** What was told; on a phone with when, and why it was not heard. */
function What({ row }: { row: Command }) {
  return (
    <>
      <Name text={row.value ? `${row.command} = ${row.value}` : row.command} />
      <span class="narrow-show">
        <Age at={row.queued} /> {row.answer === null && <CommandReason reason={row.reason} />}
      </span>
    </>
  );
}

function Do({ row, open }: { row: Command; open: (doing: Doing) => void }) {
  if (row.state === "queued") {
    return (
      <button class="small danger" aria-label={t(w.recallNamed, { name: named(row) })} onClick={() => open({ kind: "recall", uids: [row.uid], name: row.command.slice(0, 64) })}>
        {t(w.recall)}
      </button>
    );
  }
  if (row.state !== "expired" && row.state !== "failed") return null;
  return (
    <button class="small" aria-label={t(w.againNamed, { name: named(row) })} onClick={() => open({ kind: "again", row })}>
      {t(w.again)}
    </button>
  );
}
