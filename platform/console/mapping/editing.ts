/** A draft of a table: undone and done again, kept over a reload, saved only over what was read. */
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import type { Result } from "terrazzo-client";
import { begin, change, goOn, type History, redo, undo } from "../dashboards/history.ts";
import { isAnothers } from "../parts/conflict.tsx";
import { call } from "../shell/api.ts";
import { readDraft, useKept } from "../shell/drafts.ts";
import type { Row } from "./rows.ts";

export type TableKind = "mapping" | "control";
export type MappingItem = Result<"get_mapping_item">;
export type ControlItem = Result<"get_control_item">;
/** What is said of a variable; what is not known of it stays. */
export type Said = Record<string, unknown>;

/** What a table is, as it is edited. */
export interface Draft {
  name: string;
  rows: readonly Row[];
  /** By code; empty for control tables. */
  variables: Readonly<Record<string, Said>>;
}

/** A table as it was read. */
export interface Stored {
  id: number;
  uid: string;
  changedAt: string;
  version: string;
  createdBy: number;
  isAvailable: number;
  draft: Draft;
}

const LOOK_MS = 15_000; // whether somebody else has saved

export async function readStored(kind: TableKind, uid: string, abort?: AbortSignal): Promise<Stored> {
  const read = kind === "mapping" ? await call("get_mapping_item", { uid }, abort) : await call("get_control_item", { uid }, abort);
  const variables = "variables" in read ? ((read as MappingItem).variables as Draft["variables"]) : {};
  const rows = Array.isArray(read.script) ? (read.script as Row[]).filter(Array.isArray) : [];
  const draft = { name: read.name, rows, variables: Array.isArray(variables) ? {} : (variables ?? {}) };
  return { id: read.id, uid: read.uid, changedAt: read.last_modified, version: read.version, createdBy: read.created_by, isAvailable: read.is_available, draft };
}

/** Writes over what was read, and nothing else; the version since. */
async function write(kind: TableKind, { uid, version, createdBy, isAvailable }: Stored, draft: Draft): Promise<string> {
  const common = { uid, if_version: version, name: draft.name, script: JSON.stringify(draft.rows), created_by: createdBy, last_modified_by: createdBy, is_available: isAvailable };
  if (kind === "control") return (await call("update_control", common)).version;
  return (await call("update_mapping", { ...common, variables: JSON.stringify(draft.variables) })).version;
}

const isSame = (a: unknown, b: unknown): boolean => a === b || JSON.stringify(a) === JSON.stringify(b);

interface Kept {
  base: Stored;
  draft: Draft;
}

const nameOf = (kind: TableKind, uid: string): string => `${kind} ${uid}`;

export interface Editing {
  base: Stored;
  draft: Draft;
  isChanged: boolean;
  canUndo: boolean;
  canRedo: boolean;
  /** What somebody else has saved meanwhile. */
  theirs: Stored | null;
  /** Changes what is there then; changes with the same key that follow each other are one step back. */
  set: (change: (now: Draft) => Partial<Draft>, key?: string) => void;
  undo: () => void;
  redo: () => void;
  discard: () => void;
  /** Shows what somebody else has saved; the own draft is gone. */
  takeTheirs: () => void;
  /** Saves; false where somebody else has saved meanwhile, which `theirs` then has. Throws as `call` does. */
  save: (isOver: boolean) => Promise<boolean>;
}

export function useEditing(kind: TableKind, read: Stored): Editing {
  const [kept] = useState(() => readDraft<Kept>(nameOf(kind, read.uid), { base: read, draft: read.draft }));
  const [base, setBase] = useState(kept?.base ?? read);
  const [history, setHistory] = useState<History<Draft>>(() => begin(kept?.draft ?? read.draft));
  const [theirs, setTheirs] = useState<Stored | null>(() => (base.version === read.version ? null : read));
  const last = useRef("");
  const isSaving = useRef(false); // a second click would find its own first one there
  const draft = history.now;
  const isChanged = !isSame(draft, base.draft);
  useKept(nameOf(kind, base.uid), useMemo(() => (isChanged ? { base, draft } : undefined), [base, draft, isChanged]));
  useEffect(() => {
    if (!isChanged && theirs) begun(theirs);
    let isOver = false; // what was asked before one's own save is no news after it
    const timer = setInterval(() => {
      if (document.hidden) return;
      readStored(kind, base.uid).then(
        (now) => {
          if (isOver || now.version === base.version) return;
          if (isChanged) setTheirs(now);
          else begun(now);
        },
        () => undefined, // the next look tells it
      );
    }, LOOK_MS);
    return () => {
      isOver = true;
      clearInterval(timer);
    };
  }, [base, isChanged]);
  const begun = (stored: Stored): void => {
    last.current = "";
    setBase(stored);
    setHistory(begin(stored.draft));
    setTheirs(null);
  };
  const step = (how: (before: History<Draft>) => History<Draft>): void => {
    last.current = "";
    setHistory(how);
  };
  return {
    base,
    draft,
    isChanged,
    theirs,
    canUndo: history.past.length > 0,
    canRedo: history.future.length > 0,
    set: (changed, key = "") => {
      const isMore = key !== "" && key === last.current;
      last.current = key;
      setHistory((before) => {
        const next = { ...before.now, ...changed(before.now) };
        if (isSame(next, before.now)) return before;
        return isMore ? goOn(before, next) : change(before, next);
      });
    },
    undo: () => step(undo),
    redo: () => step(redo),
    discard: () => begun(theirs ?? base),
    takeTheirs: () => theirs && begun(theirs),
    save: async (isOver) => {
      if (isSaving.current) return false;
      isSaving.current = true;
      try {
        const version = await write(kind, (isOver && theirs) || base, draft);
        last.current = "";
        setBase({ ...base, version, draft });
        setTheirs(null);
        return true;
      } catch (error) {
        if (!isAnothers(error)) throw error;
        setTheirs(await readStored(kind, base.uid));
        return false;
      } finally {
        isSaving.current = false;
      }
    },
  };
}
