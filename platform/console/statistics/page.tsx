/** Statistics, calculations and balances: their scripts, and what came of them as curves. */
import { Empty, Head, Name, Tag } from "../parts/basics.tsx";
import { RecordList, Tabs, useDialogs } from "../parts/list.tsx";
import type { Column } from "../parts/table.tsx";
import { may } from "../shell/api.ts";
import { titles } from "../shell/pages.ts";
import { link, route } from "../shell/routes.ts";
import { tellError } from "../shell/toasts.tsx";
import { w as common } from "../words/common.ts";
import { t } from "../words/words.ts";
import { BalanceResults } from "./balances.tsx";
import { Results } from "./results.tsx";
import { ScriptEditor } from "./editor.tsx";
import { type Kind, KINDS, newScript, type Script, scripts, setActive } from "./scripts.ts";
import { w } from "./words.ts";

export function Page() {
  const [first, uid] = route.value.path;
  const kind: Kind = KINDS.find((each) => each.id === first)?.id ?? "statistics";
  if (uid) return kind === "balance" ? <BalanceResults key={uid} uid={uid} /> : <Results key={uid} kind={kind} uid={uid} />;
  return (
    <>
      <Head title={t(titles.statistics)} />
      <Tabs label={t(titles.statistics)} base="statistics" tabs={KINDS.map((each) => [each.id, t(each.title)] as const)} />
      <List key={kind} kind={kind} />
    </>
  );
}

function List({ kind }: { kind: Kind }) {
  const { dialog, open, close, done, turn } = useDialogs<Script>();
  const toggle = async (row: Script) => {
    try {
      await setActive(kind, row.uid, !row.is_active);
      done(t(row.is_active ? w.stoppedNow : w.started));
    } catch (error) {
      tellError(error);
    }
  };
  const columns: Column<Script>[] = [
    { id: "name", title: t(common.name), width: 44, render: (row) => <a href={link(["statistics", kind, row.uid])}><Name text={row.name} /></a> },
    { id: "objects", title: t(w.objects), width: 14, isNumber: true, isMinor: true, render: (row) => row.object_list.length.toLocaleString() },
    { id: "rows", title: t(w.variables), width: 14, isNumber: true, isMinor: true, render: (row) => row.rows.length || row.inputs.length + 1 },
    { id: "state", title: t(common.state), width: 14, render: (row) => <Tag kind={row.is_active ? "good" : ""}>{t(row.is_active ? w.running : w.stopped)}</Tag> },
    {
      id: "do",
      title: t(common.state),
      isTitleHidden: true,
      isNumber: true,
      render: (row) =>
        may("admin") && (
          <button class="small" aria-label={`${t(row.is_active ? w.stop : w.start)} ${row.name}`.slice(0, 100)} onClick={() => void toggle(row)}>
            {t(row.is_active ? w.stop : w.start)}
          </button>
        ),
    },
  ];
  return (
    <>
    <RecordList
      label={t(KINDS.find((each) => each.id === kind)?.title ?? w.statistics)}
      columns={columns}
      query={kind}
      read={(index, size, _, abort) => scripts(kind, index, size, abort)}
      rowKey={(row) => row.uid}
      turn={turn}
      tools={may("admin") && <button onClick={() => open(newScript(kind))}>{t(w.newScript)}</button>}
      empty={<Empty title={t(w.none)}>{t(w.noneDo)}</Empty>}
    />
    {dialog && <ScriptEditor script={dialog} kind={kind} onClose={close} onDone={() => done(t(w.saved))} />}
    </>
  );
}
