/** Curves of objects' variables: from the gateway, and as they come. */
import type { ChartSource } from "../charts/data.ts";
import { held, type Curve, type Newest } from "../charts/curve.ts";
import { curves, live } from "../shell/api.ts";
import { clock } from "../shell/clock.ts";

/** Which variable of which object a key of a chart means. */
export type Find = (key: string) => { objectId: string; code: string };

/** The newest value of a key and since when it has it; null: it is not known to have it still. */
export type FindNewest = (key: string) => Newest | null;

/** Curves of several objects. */
export function curvesOf(find: Find, newest: FindNewest = () => null): ChartSource {
  return {
    load: async (keys, range, signal) => {
      const found: Record<string, Curve> = {};
      const ask = async (objectId: string, wanted: string[]): Promise<void> => {
        const codes = wanted.map((key) => find(key).code);
        const times = { start_time: new Date(range.from).toISOString(), end_time: new Date(range.to).toISOString() };
        const data = await curves({ object_id: objectId, keys: codes, points: range.points, before: 1, ...times }, signal);
        const to = Math.min(range.to, clock.now.peek());
        for (const key of wanted) found[key] = held(data[find(key).code] ?? { times: [], values: [] }, newest(key), range.from, to);
      };
      await Promise.all([...byObject(keys, find)].map(([objectId, wanted]) => ask(objectId, wanted)));
      return found;
    },
    follow: (keys, onValue, onGap) => {
      const stops = [...byObject(keys, find)].map(([objectId, wanted]) => follow(objectId, wanted, find, onValue, onGap));
      return () => stops.forEach((stop) => stop());
    },
  };
}

function byObject(keys: readonly string[], find: Find): Map<string, string[]> {
  const found = new Map<string, string[]>();
  for (const key of keys) {
    const { objectId } = find(key);
    found.set(objectId, [...(found.get(objectId) ?? []), key]);
  }
  return found;
}

function follow(
  objectId: string,
  keys: string[],
  find: Find,
  onValue: (key: string, at: number, value: number) => void,
  onGap: () => void,
): () => void {
  const wanted = { kinds: ["mosaic" as const], object_id: objectId, keys: keys.map((key) => find(key).code) };
  return live.subscribe(wanted, {
    onFrame: ({ data }) => {
      const at = clock.parse(String(data["time"]));
      const values = data["value"] as Record<string, unknown>;
      for (const key of keys) {
        const value = values[find(key).code];
        if (typeof value === "number" || typeof value === "boolean") onValue(key, at, Number(value));
      }
    },
    onGap,
  });
}
