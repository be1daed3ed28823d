/** The import of terminals that is under way or was last tried: it goes on where its dialog is closed, and its report is there when it is opened again. */
import { signal } from "@preact/signals";
import type { Result } from "terrazzo-client";
import { importFile } from "../shell/api.ts";
import { tell, tellError } from "../shell/toasts.tsx";
import { isStop } from "../shell/work.ts";
import { t } from "../words/words.ts";
import { words as w } from "./bulk-words.ts";
import { type CsvTable, readCsv } from "./csv.ts";
import { fileText } from "./file-text.ts";

export type Report = Required<Result<"import_terminals">>;
export type Mode = "create" | "upsert";

/** `table`: the rows, where there are errors to show at their cells. */
export interface Tried {
  report: Report;
  table: CsvTable | null;
}

export const isImporting = signal(false);
export const tried = signal<Tried | null>(null);
export const failure = signal<unknown>(undefined);
/** A file that is too long to be edited, as it was chosen. */
export const chosenFile = signal<File | null>(null);
/** Rises with each import that changed something. */
export const imported = signal(0);
/** Whether the dialog is open, and says itself what happened. */
export const isShown = signal(false);

/** What was found says nothing of what is changed now. */
export function forgetTried(): void {
  tried.value = null;
  failure.value = undefined;
}

/** Tries rows, or imports them; whether something was imported. */
export async function runImport(rows: Blob, mode: Mode, isDry: boolean): Promise<boolean> {
  if (isImporting.value) return false;
  isImporting.value = true;
  failure.value = undefined;
  try {
    const report = (await importFile("terminals", rows, t(w.importTitle), { mode, isDry })) as Report;
    tried.value = { report, table: report.failed ? readCsv(await fileText(rows)) : null };
    if (isDry || report.failed) {
      if (!isShown.value) tell(report.failed ? t(w.importBad, { n: report.errors.length + report.errors_omitted }) : t(w.importFine, counts(report)));
      return false;
    }
    tell(t(w.importDone, { created: report.created, updated: report.updated }));
    imported.value += 1;
    forgetTried();
    chosenFile.value = null;
    return true;
  } catch (error) {
    const report = reportOf(error);
    if (report) tried.value = { report, table: readCsv(await fileText(rows)) };
    else if (!isStop(error)) failure.value = error;
    if (!isShown.value && !isStop(error)) tellError(error);
    return false;
  } finally {
    isImporting.value = false;
  }
}

/** What a report counts. */
export function counts({ total, created, updated, unchanged }: Report): Record<"total" | "created" | "updated" | "unchanged", number> {
  return { total, created, updated, unchanged };
}

/** A refused import carries its report as the result of the error. */
function reportOf(error: unknown): Report | null {
  const result = error instanceof Error && "result" in error ? error.result : null;
  return result && typeof result === "object" && "errors" in result ? (result as Report) : null;
}
