/** A mapping or control table: its rows, a preview of real messages, what changes, saving. */
import { useRef, useState } from "preact/hooks";
import { Card, Dialog, Head, Problem } from "../parts/basics.tsx";
import { Conflict } from "../parts/conflict.tsx";
import { may } from "../shell/api.ts";
import { useLoad } from "../shell/hooks.ts";
import { link, replaceQuery, route } from "../shell/routes.ts";
import { tell, tellError } from "../shell/toasts.tsx";
import { w as common } from "../words/common.ts";
import { t } from "../words/words.ts";
import { GatewayError } from "terrazzo-client";
import { TABLES } from "./columns.ts";
import { pointsOf } from "./complete.ts";
import { type Editing, readStored, type Stored, type TableKind, useEditing } from "./editing.ts";
import { FileButtons } from "./file-buttons.tsx";
import { Grid } from "./grid.tsx";
import { Changes, Effect, Preview, valueText } from "./preview.tsx";
import { Replay } from "./replay.tsx";
import { partText, type Row, type Wrong, wrongOf } from "./rows.ts";
import { check, terminalsOf, useChecked, type Using, type UsingObject, useUsing } from "./using.ts";
import { VariableTable } from "./variables.tsx";
import { w } from "./words.ts";

const NO_ROWS: readonly Row[] = []; // of a control table only the messages are asked for, whose points complete what is typed

export function TableEditor({ kind, uid }: { kind: TableKind; uid: string }) {
  const found = useLoad((abort) => readStored(kind, uid, abort), [kind, uid]);
  const first = useRef<Stored | undefined>(undefined);
  first.current ??= found.data; // at once: a page that has read is not one that loads
  if (first.current) return <Shown kind={kind} read={first.current} />;
  return (
    <>
      <Head title={t(w.title)}>
        <a class="button" href={link(["mapping"])}>
          {t(w.back)}
        </a>
      </Head>
      {found.error !== undefined ? <Problem error={found.error} retry={found.reload} /> : <p class="dim" aria-busy="true">{t(common.loading)}</p>}
    </>
  );
}

function Shown({ kind, read }: { kind: TableKind; read: Stored }) {
  const editing = useEditing(kind, read);
  const using = useUsing(kind, read.id);
  const [refused, setRefused] = useState<{ rows: readonly Row[]; wrong: Wrong } | null>(null);
  const [asked, setAsked] = useState<"save" | "discard" | null>(null);
  const [isOffered, setOffered] = useState(false);
  const tab = route.value.query.get("tab") ?? "rows";
  const isAdmin = may("admin");
  const save = async (isOver: boolean): Promise<void> => {
    setAsked(null);
    const isMade = kind === "mapping" && editing.draft.rows !== editing.base.draft.rows;
    try {
      if (!(await editing.save(isOver))) return;
      setRefused(null);
      setOffered(isMade);
      tell(t(w.saved));
    } catch (error) {
      const wrong = error instanceof GatewayError ? wrongOf(error) : null;
      if (wrong) setRefused({ rows: editing.draft.rows, wrong });
      tellError(error);
    }
  };
  const onKey = (event: KeyboardEvent): void => {
    if (!(event.ctrlKey || event.metaKey) || !isAdmin) return;
    const key = event.key.toLowerCase();
    if (key === "z") (event.shiftKey ? editing.redo : editing.undo)();
    else if (key === "y") editing.redo();
    else if (key !== "s") return;
    else if (editing.isChanged) setAsked("save");
    event.preventDefault();
  };
  return (
    <div onKeyDown={onKey}>
      <Top kind={kind} editing={editing} isAdmin={isAdmin} onAsk={setAsked} />
      {editing.theirs && <Conflict told={t(w.other, { time: editing.theirs.changedAt })} onTheirs={editing.takeTheirs} onMine={() => void save(true)} />}
      {isOffered && !editing.isChanged && tab !== "replay" && !!using.data?.rows.length && (
        <p class="banner">
          <span>{t(w.offerReplay)}</span>
          <a class="button" href={link([route.value.page, ...route.value.path], { tab: "replay" })}>
            {t(w.history)}
          </a>
          <button class="plain small" aria-label={t(common.close)} onClick={() => setOffered(false)}>
            {"✕"}
          </button>
        </p>
      )}
      {!isAdmin && <p class="dim">{t(w.onlyLook)}</p>}
      <Tabs kind={kind} shown={tab} isAdmin={isAdmin} />
      {tab === "variables" ? (
        <VariableTable draft={editing.draft} isFixed={!isAdmin} onChange={(how, key) => editing.set(({ variables }) => ({ variables: how(variables) }), key)} />
      ) : tab === "replay" ? (
        <Replay uid={read.uid} using={using.data} />
      ) : (
        <RowsTab kind={kind} editing={editing} using={using.data} isAdmin={isAdmin} refused={refused?.rows === editing.draft.rows ? refused.wrong : null} />
      )}
      {asked === "save" && <SaveDialog kind={kind} editing={editing} using={using.data} onClose={() => setAsked(null)} onSave={() => void save(false)} />}
      {asked === "discard" && (
        <Dialog title={t(w.discardReally)} onClose={() => setAsked(null)}>
          <p>{t(w.discardDo)}</p>
          <footer>
            <button onClick={() => setAsked(null)}>{t(common.cancel)}</button>
            <button
              class="danger"
              onClick={() => {
                editing.discard();
                setAsked(null);
              }}
            >
              {t(w.discard)}
            </button>
          </footer>
        </Dialog>
      )}
    </div>
  );
}

function Top(props: { kind: TableKind; editing: Editing; isAdmin: boolean; onAsk: (what: "save" | "discard") => void }) {
  const { kind, editing, isAdmin, onAsk } = props;
  const { draft, base, isChanged } = editing;
  const { widths } = TABLES[kind];
  const rename = (name: string): void => editing.set(() => ({ name }), "name");
  return (
    <>
      <Head name title={base.draft.name} sub={isChanged ? t(w.unsaved) : t(w.description, { n: draft.rows.length })}>
        <FileButtons name={draft.name} rows={draft.rows} widths={widths} isFixed={!isAdmin} onRows={(rows) => editing.set(() => ({ rows }))} />
        {isAdmin && (
          <>
            <button disabled={!editing.canUndo} onClick={editing.undo}>
              {t(w.undo)}
            </button>
            <button disabled={!editing.canRedo} onClick={editing.redo}>
              {t(w.redo)}
            </button>
            {isChanged && <button onClick={() => onAsk("discard")}>{t(w.discard)}</button>}
            <button class="primary" disabled={!isChanged} onClick={() => onAsk("save")}>
              {t(common.save)}
            </button>
          </>
        )}
        <a class="button" href={link(["mapping"])}>
          {t(w.back)}
        </a>
      </Head>
      {isAdmin && (
        <div class="tools">
          <label class="grow table-name">
            <span class="sr">{t(common.name)}</span>
            <input value={draft.name} maxLength={64} onInput={(event) => rename(event.currentTarget.value)} />
          </label>
        </div>
      )}
    </>
  );
}

function Tabs({ kind, shown, isAdmin }: { kind: TableKind; shown: string; isAdmin: boolean }) {
  if (kind === "control") return null;
  const tabs = [
    { id: "rows", name: t(w.rows) },
    { id: "variables", name: t(w.variables) },
    ...(isAdmin ? [{ id: "replay", name: t(w.history) }] : []),
  ];
  return (
    <nav class="tabs" aria-label={t(w.title)}>
      {tabs.map((tab) => (
        <a key={tab.id} href={link([route.value.page, ...route.value.path], { tab: tab.id === "rows" ? "" : tab.id })} aria-current={tab.id === shown ? "page" : undefined}>
          {tab.name}
        </a>
      ))}
    </nav>
  );
}

/** The object whose messages are looked at: the address names it. */
function objectOf(using: Using | undefined): UsingObject | undefined {
  const wanted = route.value.query.get("object");
  return using?.rows.find((each) => String(each.id) === wanted) ?? using?.rows[0];
}

function RowsTab(props: { kind: TableKind; editing: Editing; using: Using | undefined; isAdmin: boolean; refused: Wrong | null }) {
  const { kind, editing, using, isAdmin, refused } = props;
  const { draft, base } = editing;
  const { columns, widths, make } = TABLES[kind];
  const object = objectOf(using);
  const terminals = terminalsOf(object);
  const isMapping = kind === "mapping";
  const checked = useChecked(isMapping ? draft.rows : NO_ROWS, terminals, !!using);
  const isRight = !checked.data?.problems.length;
  const wrong = (checked.data?.problems ?? []).map((each) => ({ row: each.row - 1, place: each.column ? each.column - 1 : null, reason: each.reason, told: each.told }));
  const now = isMapping && isRight && checked.data ? Object.fromEntries(Object.entries(checked.data.variables).map(([code, value]) => [code, valueText(value)])) : {};
  const codes = draft.rows.filter((row) => !isMapping || partText(row, "kind") !== "EVNT").map((row) => ({ text: partText(row, "code").trim(), note: partText(row, "english") }));
  return (
    <div class="stack">
      <Card>
        <Grid
          label={t(isMapping ? w.mappings : w.controls)}
          columns={columns}
          widths={widths}
          rows={draft.rows}
          wrong={refused ? [refused, ...wrong] : wrong}
          values={isMapping ? now : undefined}
          points={pointsOf(checked.data?.messages ?? [], terminals)}
          codes={codes.filter((each) => each.text)}
          make={make}
          isFixed={!isAdmin}
          onChange={(how, key) => editing.set(({ rows }) => ({ rows: how(rows) }), key)}
        />
        {isAdmin && <p class="dim keys">{t(w.keys)}</p>}
      </Card>
      <div class="grid">
        {isMapping && (
          <div class="span8">
            <Preview checked={checked} using={using} object={object} onObject={(id) => replaceQuery({ object: id })} />
          </div>
        )}
        <Card class={isMapping ? "span4" : ""} title={t(w.changes)}>
          <Changes before={base.draft} after={draft} using={using} />
        </Card>
      </div>
    </div>
  );
}

function SaveDialog(props: { kind: TableKind; editing: Editing; using: Using | undefined; onClose: () => void; onSave: () => void }) {
  const { kind, editing, using, onClose, onSave } = props;
  const object = objectOf(using);
  const effect = useLoad(
    async (abort) => {
      if (kind === "control" || !object) return null;
      const [saved, draft] = await Promise.all([check(editing.base.draft.rows, terminalsOf(object), abort), check(editing.draft.rows, terminalsOf(object), abort)]);
      return saved.problems.length || draft.problems.length ? null : { saved, draft };
    },
    [object?.id],
  );
  return (
    <Dialog title={t(w.saveReally)} class="wide" onClose={onClose}>
      <Changes before={editing.base.draft} after={editing.draft} using={using}>
        {effect.data && object && <Effect name={object.name} {...effect.data} />}
      </Changes>
      {kind === "mapping" && <p class="dim">{t(w.saveDo)}</p>}
      <footer>
        <button onClick={onClose}>{t(common.cancel)}</button>
        <button class="primary" onClick={onSave}>
          {t(common.save)}
        </button>
      </footer>
    </Dialog>
  );
}
