/** Edits a dashboard: widgets by pointer or keys, what they show by form; undone, and saved only over what was read. */
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import type { Result } from "terrazzo-client";
import { Dialog, Head, Name, Problem } from "../parts/basics.tsx";
import { Conflict, isAnothers } from "../parts/conflict.tsx";
import { call } from "../shell/api.ts";
import { forgetDraft, readDraft, useAskedBeforeLeaving, useKept } from "../shell/drafts.ts";
import { useLoad } from "../shell/hooks.ts";
import { go, link, replaceQuery, route } from "../shell/routes.ts";
import { tell, tellError } from "../shell/toasts.tsx";
import { w as common } from "../words/common.ts";
import { t } from "../words/words.ts";
import { Canvas } from "./canvas.tsx";
import { Form } from "./form.tsx";
import { begin, change, goOn, type History, redo, undo } from "./history.ts";
import { freePlace } from "./layout.ts";
import { addPage, addWidget, type Json, readPages, removeWidget, setPicture } from "./record.ts";
import { PictureChoice } from "./picture.tsx";
import { w } from "./words.ts";

type Dashboard = Result<"get_dashboard_item">;

/** What is kept of what is not saved: what it was made of, and what it is. */
interface Kept {
  base: Dashboard;
  name: string;
  script: Json;
}

const draftOf = (uid: string): string => `dashboard ${uid}`;

/** What was kept may be taken back in one step. */
const begunWith = (read: Json, kept: Json | undefined): History<Json> => (kept ? change(begin(read), kept) : begin(read));

const LOOK_MS = 15_000; // whether somebody else has saved
const NEW_SIZE = [6, 4] as const;

export function Editor({ uid }: { uid: string }) {
  const found = useLoad((abort) => call("get_dashboard_item", { uid }, abort), [uid]);
  const [turn, setTurn] = useState(0);
  if (found.error !== undefined) return <Problem error={found.error} retry={found.reload} />;
  if (!found.data) return <p class="dim">{t(common.loading)}</p>;
  const again = async (): Promise<void> => {
    found.reload();
    setTurn((count) => count + 1);
  };
  return <Editing key={`${turn} ${found.data.version}`} read={found.data} onAgain={() => void again()} />;
}

function Editing({ read, onAgain }: { read: Dashboard; onAgain: () => void }) {
  const [kept] = useState(() => readDraft<Kept>(draftOf(read.uid), { base: read, name: read.name, script: (read.script ?? {}) as Json }));
  const [base, setBase] = useState(kept?.base ?? read);
  const [history, setHistory] = useState<History<Json>>(() => begunWith((base.script ?? {}) as Json, kept?.script));
  const [name, setName] = useState(kept?.name ?? read.name);
  const [chosen, setChosen] = useState<number | null>(null);
  const [theirs, setTheirs] = useState<Dashboard | null>(() => (isSame(base, read) ? null : read));
  const [isLeaving, setLeaving] = useState(false);
  const isSaving = useRef(false); // a second click would find its own first one there
  const script = history.now;
  const pages = readPages(script);
  const page = pages.find((each) => each.key === route.value.query.get("page")) ?? pages[0];
  const isChanged = name !== base.name || JSON.stringify(script) !== JSON.stringify(base.script ?? {});
  const lastKey = useRef("");
  const set = (next: Json, key = ""): void => {
    const isMore = key !== "" && key === lastKey.current;
    lastKey.current = key;
    setHistory((before) => (isMore ? goOn(before, next) : change(before, next)));
  };
  const step = (how: typeof undo): void => {
    lastKey.current = "";
    setHistory(how);
  };
  useEffect(() => lookForOthers(base, setTheirs), [base]);
  useKept(draftOf(base.uid), useMemo(() => (isChanged ? { base, name, script } : undefined), [isChanged, base, name, script]));
  useAskedBeforeLeaving(isChanged);
  const takeTheirs = (): void => {
    forgetDraft(draftOf(base.uid));
    onAgain();
  };
  const leave = (): void => {
    forgetDraft(draftOf(base.uid));
    go(back);
  };
  const save = async (isOver: boolean): Promise<void> => {
    if (isSaving.current) return;
    isSaving.current = true;
    try {
      const saved = { name: name || base.name, script };
      const { version } = await call("update_dashboard", { uid: base.uid, if_version: ((isOver && theirs) || base).version, name: saved.name, script: JSON.stringify(script) });
      setBase({ ...base, ...saved, version } as Dashboard);
      setName(saved.name);
      setTheirs(null);
      tell(t(w.saved));
    } catch (error) {
      if (isAnothers(error)) await call("get_dashboard_item", { uid: base.uid }).then(setTheirs, tellError);
      else tellError(error);
    } finally {
      isSaving.current = false;
    }
  };
  const show = (key: string): void => {
    setChosen(null);
    replaceQuery({ page: key });
  };
  const back = link(["dashboards", base.uid], { page: page?.key });
  useShortcuts((key, isShift, isTyping) => {
    if (key === "s") void (isChanged && save(false));
    else if (isTyping) return false; // a field undoes what is typed in it
    else if (key === "z") step(isShift ? redo : undo);
    else if (key === "y") step(redo);
    else return false;
    return true;
  });
  const add = (): void => {
    if (!page) return;
    set(addWidget(script, page.key, "vlu", t(w.newWidget), freePlace(page, ...NEW_SIZE)));
    setChosen((((script[page.key] as Json)["data"] as unknown[] | undefined) ?? []).length);
  };
  const more = (): void => {
    const [next, key] = addPage(script, t(w.newPage, { n: pages.length + 1 }));
    set(next);
    show(key);
  };
  return (
    <>
      <Head title={t(w.editing, { name: base.name })} sub={isChanged ? t(w.unsaved) : ""}>
        <button disabled={!history.past.length} onClick={() => step(undo)}>
          {t(w.undo)}
        </button>
        <button disabled={!history.future.length} onClick={() => step(redo)}>
          {t(w.redo)}
        </button>
        <button class="primary" disabled={!isChanged} onClick={() => void save(false)}>
          {t(common.save)}
        </button>
        <button onClick={() => (isChanged ? setLeaving(true) : go(back))}>{t(w.done)}</button>
      </Head>
      {theirs && <Conflict told={t(w.other, { time: theirs.last_modified })} onTheirs={takeTheirs} onMine={() => void save(true)} />}
      <div class="tools">
        <label class="grow">
          <span class="sr">{t(common.name)}</span>
          <input value={name} maxLength={64} onInput={(event) => setName(event.currentTarget.value)} />
        </label>
        {pages.map((each) => (
          <button key={each.key} class="small" aria-pressed={each.key === page?.key} onClick={() => show(each.key)}>
            <Name text={each.name} />
          </button>
        ))}
        <button class="small" onClick={more}>
          {t(w.addPage)}
        </button>
        {page && <PictureChoice uid={page.picture} onChange={(uid) => set(setPicture(script, page.key, uid))} />}
        <button class="small" onClick={add} disabled={!page}>
          {t(w.addWidget)}
        </button>
      </div>
      <p class="dim">{t(w.editHint)}</p>
      <div class="editor">
        {page && (
          <Canvas
            page={page}
            script={script}
            chosen={chosen}
            onChoose={setChosen}
            onChange={set}
            onRemove={(index) => {
              setChosen(null);
              set(removeWidget(script, page.key, index));
            }}
          />
        )}
        {page && <Form page={page} script={script} widget={page.widgets.find((each) => each.index === chosen) ?? null} isOneOfMany={pages.length > 1} onChange={set} />}
      </div>
      {isLeaving && (
        <Dialog title={t(w.leaveReally)} onClose={() => setLeaving(false)}>
          <p>{t(w.leaveDo)}</p>
          <footer>
            <button onClick={() => setLeaving(false)}>{t(common.cancel)}</button>
            <button class="danger" onClick={leave}>
              {t(w.leaveNow)}
            </button>
          </footer>
        </Dialog>
      )}
    </>
  );
}

const isField = (target: EventTarget | null): boolean => target instanceof HTMLInputElement || target instanceof HTMLSelectElement;

/** Keys with Ctrl or Cmd, wherever the focus is: a button that was pressed may be out of use now, and has none. */
function useShortcuts(act: (key: string, isShift: boolean, isTyping: boolean) => boolean): void {
  const latest = useRef(act);
  latest.current = act;
  useEffect(() => {
    const onKey = (event: KeyboardEvent): void => {
      if (!(event.ctrlKey || event.metaKey) || document.querySelector("dialog[open]")) return;
      if (latest.current(event.key.toLowerCase(), event.shiftKey, isField(event.target))) event.preventDefault();
    };
    addEventListener("keydown", onKey);
    return () => removeEventListener("keydown", onKey);
  }, []);
}

const isSame = (a: Dashboard, b: Dashboard): boolean => a.version === b.version;

function lookForOthers(base: Dashboard, onOther: (theirs: Dashboard) => void): () => void {
  let isOver = false; // what was asked before one's own save is no news after it
  const look = async (): Promise<void> => {
    if (document.hidden) return;
    const now = await call("get_dashboard_item", { uid: base.uid });
    if (!isOver && !isSame(now, base)) onOther(now);
  };
  const timer = setInterval(() => void look().catch(() => undefined), LOOK_MS); // the next look tells it
  return () => {
    isOver = true;
    clearInterval(timer);
  };
}

