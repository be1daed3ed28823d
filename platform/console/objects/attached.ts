/** The files of an object: a file record that the object names, with a list of uploads; each stays as others wrote it. */
import type { Page } from "terrazzo-client";

export interface StoredFile {
  name: string;
  url: string;
  uid: string;
}

export interface FileRecord {
  id: number;
  file: StoredFile[];
}

/** Of one file record, as the platform has it. */
export const MOST_FILES = 100;

const NEWEST = "100"; // records among which one that was just added is looked for
const PATH = "object/api/v1/file";

/** What of the API attaching takes. */
export interface FileAsk {
  pathPage: <R>(name: string, query: Record<string, string>, abort?: AbortSignal) => Promise<Page<R>>;
  send: (name: string, fields: object) => Promise<unknown>;
}

/** The address of what the platform keeps; null: somebody else's, which is not followed. */
export function ownAddress(url: unknown): string | null {
  return /^\/?((?:[\w-]+\/)*object\/api\/v1\/file\/download\/[\w-]+)$/.exec(String(url ?? ""))?.[1] ?? null;
}

/** The files of a record; null: the record is not there any more. */
export async function readFiles(ask: FileAsk, id: number, abort?: AbortSignal): Promise<StoredFile[] | null> {
  const { rows } = await ask.pathPage<FileRecord>(`${PATH}/getList`, { where_and: JSON.stringify([["id", "=", id]]), page_size: "1" }, abort);
  const found = rows[0];
  return found ? filesOf(found) : null;
}

function filesOf(record: FileRecord): StoredFile[] {
  return Array.isArray(record.file) ? record.file : [];
}

/** Adds files to an object's record, which is made where the object names none. */
export async function attach(ask: FileAsk, object: { id: number; name: string; file_id: number | null }, added: readonly StoredFile[]): Promise<void> {
  const before = object.file_id ? await readFiles(ask, object.file_id) : null; // as they are now: somebody else may have added one meanwhile
  if (before) return void (await ask.send(`${PATH}/edit`, { id: object.file_id, file: [...before, ...added] }));
  await ask.send(`${PATH}/add`, { name: object.name.slice(0, 64), file: added });
  const newest = await ask.pathPage<FileRecord>(`${PATH}/getList`, { page_size: NEWEST, order_by: '["id", "desc"]' });
  const made = newest.rows.find((each) => filesOf(each).some(({ uid }) => uid === added[0]?.uid));
  if (!made) throw new Error(`${PATH}: ${added[0]?.uid ?? ""}`);
  await ask.send("object/api/v1/object/edit", { id: object.id, file_id: made.id });
}

/** Takes a file out of a record; the upload is deleted by `discard`, unless another record names it. */
export async function detach(ask: FileAsk, id: number, uid: string): Promise<void> {
  const before = await readFiles(ask, id);
  if (before) await ask.send(`${PATH}/edit`, { id, file: before.filter((each) => each.uid !== uid) });
}

/** Deletes an upload that no record names. */
export async function discard(ask: FileAsk, uid: string): Promise<void> {
  await ask.send(`${PATH}/discard`, { uid });
}
