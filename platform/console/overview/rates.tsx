/** What comes in, live, while somebody looks: super users see the broker's counters, others what their terminals report. */
import { useRef, useState } from "preact/hooks";
import { Card, short, Spark } from "../parts/basics.tsx";
import { call, session } from "../shell/api.ts";
import { useLoad, useSecondReading } from "../shell/hooks.ts";
import { t } from "../words/words.ts";
import { w } from "./words.ts";

const EVERY_MS = 5_000;
const MOST = 120; // ten minutes

interface Reading {
  atMs: number;
  counters: Record<string, number>;
}

export function Rates() {
  const who = session.value;
  return who?.is_super ? <Machine /> : null;
}

function Machine() {
  const [series, setSeries] = useState<Record<string, number[]>>({});
  const before = useRef<Reading | null>(null);
  const { data, reload } = useLoad(
    async (abort) => {
      const found = await call("get_broker_status", {}, abort);
      const counters = found.counters as Record<string, number>;
      const now = performance.now();
      const last = before.current;
      if (last) {
        const seconds = (now - last.atMs) / 1_000;
        setSeries((all) => {
          const next: Record<string, number[]> = {};
          for (const [name, value] of Object.entries(counters)) {
            const rate = Math.max(0, (value - (last.counters[name] ?? value)) / seconds);
            next[name] = [...(all[name] ?? []), rate].slice(-MOST);
          }
          return next;
        });
      }
      before.current = { atMs: now, counters };
      return counters;
    },
    [],
    EVERY_MS,
  );
  useSecondReading(reload);
  if (!data) return null;
  const last = (name: string) => series[name]?.at(-1);
  const incoming = sum(series["messages_in_qos0"], series["messages_in_qos1"], series["messages_in_qos2"]);
  const figures = [
    { title: t(w.messagesIn), value: incoming.at(-1), unit: t(w.perSecond), values: incoming },
    { title: t(w.bytesIn), value: last("bytes_in"), unit: t(w.perSecond), values: series["bytes_in"] ?? [] },
    { title: t(w.messagesOut), value: last("messages_out"), unit: t(w.perSecond), values: series["messages_out"] ?? [] },
    { title: t(w.connections), value: data["connections"], unit: "", values: [] },
  ];
  return (
    <>
      {figures.map((each) => (
        <Card key={each.title} title={each.title} class="span3">
          <div class="figure" title={t(w.machine)}>
            {each.value === undefined ? "…" : short(each.value)} <small>{each.unit}</small>
          </div>
          <Spark values={each.values} label={`${each.title}: ${t(w.machine)}`} />
        </Card>
      ))}
    </>
  );
}

function sum(...all: (number[] | undefined)[]): number[] {
  const length = Math.min(...all.map((each) => each?.length ?? 0));
  return Array.from({ length }, (_, i) => all.reduce((total, each) => total + (each?.at(i - length) ?? 0), 0));
}
