/** What the widgets of a page show: variables of their objects with the newest values, read once and followed. */
import { signal } from "@preact/signals";
import { useEffect, useState } from "preact/hooks";
import { call, isWall, live, page } from "../shell/api.ts";
import { useLoad } from "../shell/hooks.ts";
import type { ObjectVariable, Value } from "../objects/variables.ts";
import { objectOf, type DashboardPage, type WidgetValue } from "./record.ts";

/** A variable as it is now; null: the object has no such variable, or there is no such object. */
export type Known = (value: WidgetValue) => ObjectVariable | null;

export interface PageValues {
  known: Known;
  isRead: boolean;
  error: unknown;
  objectOf: (value: WidgetValue) => string;
  /** An object's name; its number while that is not known. */
  nameOf: (objectId: string) => string;
}

type Newest = Record<string, Record<string, { value: Value; time: string }>>;

/** Names of objects as a wall's link gives them. */
export const wallNames = signal<ReadonlyMap<string, string>>(new Map());

const OBJECTS_MAX = 24; // subscriptions of one page
const READ_MS = 300_000;

/** The values of a page that is shown for an object (empty: for its own). */
export function usePageValues(drawn: DashboardPage, shown: string): PageValues {
  const find = (value: WidgetValue): string => objectOf(value, drawn, shown);
  const objects = [...new Set(drawn.widgets.flatMap((each) => each.values.map(find)))].filter(Boolean).slice(0, OBJECTS_MAX);
  const found = useLoad((abort) => readObjects(objects, abort), [objects.join()], READ_MS);
  const newest = useNewest(objects, found.reload);
  const known: Known = (value) => {
    const id = find(value);
    const variable = found.data?.get(id)?.find((each) => each.code === value.code);
    if (!variable) return null;
    const came = newest[id]?.[value.code];
    return came && came.time >= (variable.time ?? "") ? { ...variable, value: came.value as ObjectVariable["value"], time: came.time } : variable;
  };
  const names = useLoad((abort) => (isWall() ? Promise.resolve(wallNames.peek()) : readNames(objects, abort)), [objects.join(), wallNames.value.size]);
  return { known, isRead: found.data !== undefined, error: found.error, objectOf: find, nameOf: (id) => names.data?.get(id) ?? id };
}

async function readNames(objects: string[], abort: AbortSignal): Promise<Map<string, string>> {
  if (!objects.length) return new Map();
  const { rows } = await page("get_object_list", { where_in: ["id", objects], page_size: OBJECTS_MAX }, abort);
  return new Map(rows.map((each) => [String(each.id), each.name]));
}

async function readObjects(objects: string[], abort: AbortSignal): Promise<Map<string, ObjectVariable[]>> {
  if (!isWall()) return new Map(await Promise.all(objects.map((id) => readObject(id, abort))));
  const found = await call("get_wall_values", {}, abort);
  return new Map(Object.entries(found.objects));
}

/** An object that is not there (any more) has no variables; the rest of the page shows its own. */
async function readObject(id: string, abort: AbortSignal): Promise<[string, ObjectVariable[]]> {
  try {
    return [id, await call("get_object_variable_list", { object_id: id }, abort)];
  } catch (error) {
    if ((error as { code?: number }).code === 10404) return [id, []];
    throw error;
  }
}

function useNewest(objects: string[], onGap: () => void): Newest {
  const [newest, setNewest] = useState<Newest>({});
  useEffect(() => {
    let came: Newest = {};
    let frame = 0;
    const show = (): void => {
      frame = 0;
      const fresh = came;
      came = {};
      setNewest((before) => merged(before, fresh));
    };
    const stops = objects.map((id) =>
      live.subscribe(
        { kinds: ["mosaic"], object_id: id },
        {
          onFrame: ({ data }) => {
            const time = String(data["time"]);
            const own = (came[id] ??= {});
            for (const [code, value] of Object.entries(data["value"] as Record<string, Value>)) own[code] = { value, time };
            frame ||= requestAnimationFrame(show);
          },
          onGap,
        },
      ),
    );
    return () => {
      cancelAnimationFrame(frame);
      stops.forEach((stop) => stop());
    };
  }, [objects.join()]);
  return newest;
}

function merged(before: Newest, fresh: Newest): Newest {
  const found = { ...before };
  for (const [id, values] of Object.entries(fresh)) found[id] = { ...found[id], ...values };
  return found;
}
