/** The scripts of a kind: started, stopped, written. */
import { Empty, Name, Tag } from "../parts/basics.tsx";
import { RecordList, useDialogs } from "../parts/list.tsx";
import type { Column } from "../parts/table.tsx";
import { may } from "../shell/api.ts";
import { useAsked } from "../shell/hooks.ts";
import { link } from "../shell/routes.ts";
import { tellError } from "../shell/toasts.tsx";
import { w as common } from "../words/common.ts";
import { t } from "../words/words.ts";
import { ScriptEditor } from "./editor.tsx";
import { type Kind, newScript, type Script, scripts, setActive } from "./scripts.ts";
import { w } from "./words.ts";

interface Props {
  kind: Kind;
  label: string;
  /** Where one of them is looked at: its uid is added. */
  base: readonly string[];
}

export function ScriptList({ kind, label, base }: Props) {
  const { dialog, open, close, done, gone, turn } = useDialogs<Script>();
  const isRetainer = kind === "retainer";
  useAsked("add", () => may("admin") && open(newScript(kind)));
  const toggle = async (row: Script) => {
    try {
      await setActive(kind, row.uid, !row.is_active);
      done(t(row.is_active ? (isRetainer ? w.stoppedRetainer : w.stoppedNow) : w.started));
    } catch (error) {
      tellError(error);
    }
  };
  return (
    <>
      <RecordList
        label={label}
        columns={columns(kind, base, (row) => void toggle(row))}
        query={kind}
        read={(index, size, _, abort) => scripts(kind, index, size, abort)}
        rowKey={(row) => row.uid}
        turn={turn}
        tools={may("admin") && <button onClick={() => open(newScript(kind))}>{t(w.newScript)}</button>}
        empty={<Empty title={t(isRetainer ? w.noRetainers : w.none)}>{t(isRetainer ? w.noRetainersDo : w.noneDo)}</Empty>}
      />
      {dialog && <ScriptEditor script={dialog} kind={kind} onClose={close} onDone={() => done(savedText(kind))} onRemoved={gone} />}
    </>
  );
}

/** What is told when a script was written. */
export function savedText(kind: Kind): string {
  return t(kind === "retainer" ? w.savedRetainer : w.saved);
}

function columns(kind: Kind, base: readonly string[], toggle: (row: Script) => void): Column<Script>[] {
  return [
    { id: "name", title: t(common.name), width: 44, render: (row) => <a href={link([...base, row.uid])}><Name text={row.name} /></a> },
    { id: "objects", title: t(w.objects), width: 14, isNumber: true, isMinor: true, render: (row) => row.object_list.length.toLocaleString() },
    { id: "rows", title: t(kind === "retainer" ? w.labels : w.variables), width: 14, isNumber: true, isMinor: true, render: (row) => row.rows.length || row.inputs.length + 1 },
    { id: "state", title: t(common.state), width: 14, render: (row) => <Tag kind={row.is_active ? "good" : ""}>{t(row.is_active ? w.running : w.stopped)}</Tag> },
    {
      id: "do",
      title: t(common.state),
      isTitleHidden: true,
      isNumber: true,
      render: (row) =>
        may("admin") && (
          <button class="small" aria-label={`${t(row.is_active ? w.stop : w.start)} ${row.name}`.slice(0, 100)} onClick={() => toggle(row)}>
            {t(row.is_active ? w.stop : w.start)}
          </button>
        ),
    },
  ];
}
