/** Names of the objects that records are about, which have their ids. */
import type { Page } from "terrazzo-client";
import { page } from "./api.ts";

interface OfObject {
  object_id: string | null;
}

/** A page of records with the names of their objects; empty where there is none (any more). */
export async function withObjectNames<R extends OfObject>(found: Page<R>, abort?: AbortSignal): Promise<Page<R & { objectName: string }>> {
  const ids = [...new Set(found.rows.flatMap((each) => (each.object_id ? [Number(each.object_id)] : [])))];
  const objects = ids.length ? (await page("get_object_list", { where_in: ["id", ids], page_size: ids.length }, abort)).rows : [];
  const names = new Map(objects.map((each) => [String(each.id), each.name]));
  return { ...found, rows: found.rows.map((each) => ({ ...each, objectName: names.get(each.object_id ?? "") ?? "" })) };
}
