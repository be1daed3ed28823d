/** What comes in, live, while somebody looks: of one's company; super users see what the broker does for all. */
import { useRef, useState } from "preact/hooks";
import { Card, short, Spark } from "../parts/basics.tsx";
import { call, session } from "../shell/api.ts";
import { useLoad, useSecondReading } from "../shell/hooks.ts";
import { type Pair, t } from "../words/words.ts";
import { w } from "./words.ts";

const EVERY_MS = 5_000;
const MOST = 120; // ten minutes

type Counters = Readonly<Record<string, number>>;

interface Reading {
  atMs: number;
  counters: Counters;
}

export function Rates() {
  return session.value?.is_super ? <Machine /> : <Company />;
}

/** What counters read last, and how fast each rises, once there are two readings. */
function useRates(read: (abort: AbortSignal) => Promise<Counters>): { now: Counters | undefined; series: Record<string, number[]> } {
  const [series, setSeries] = useState<Record<string, number[]>>({});
  const before = useRef<Reading | null>(null);
  const { data, reload } = useLoad(
    async (abort) => {
      const counters = await read(abort);
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
  return { now: data, series };
}

function Company() {
  const { now, series } = useRates(async (abort) => ({ ...(await call("get_intake", {}, abort)) }));
  if (!now) return null;
  return (
    <>
      <Rate title={w.reportsIn} about={w.company} span={4} values={series["reports"] ?? []} />
      <Rate title={w.bytesIn} about={w.company} span={4} values={series["bytes"] ?? []} />
      <Card title={t(w.unstoredYet)} class="span4">
        <div class="figure">{short(now["waiting"] ?? 0)}</div>
        <p class="dim">{t(w.unstoredYetWhy)}</p>
      </Card>
    </>
  );
}

function Machine() {
  const { now, series } = useRates(async (abort) => (await call("get_broker_status", {}, abort)).counters as Counters);
  if (!now) return null;
  const incoming = sum(series["messages_in_qos0"], series["messages_in_qos1"], series["messages_in_qos2"]);
  return (
    <>
      <Rate title={w.messagesIn} about={w.machine} span={3} values={incoming} />
      <Rate title={w.bytesIn} about={w.machine} span={3} values={series["bytes_in"] ?? []} />
      <Rate title={w.messagesOut} about={w.machine} span={3} values={series["messages_out"] ?? []} />
      <Card title={t(w.connections)} class="span3">
        <div class="figure">{short(now["connections"] ?? 0)}</div>
      </Card>
    </>
  );
}

function Rate({ title, about, span, values }: { title: Pair; about: Pair; span: number; values: readonly number[] }) {
  const last = values.at(-1);
  return (
    <Card title={t(title)} class={`span${span}`}>
      <div class="figure" title={t(about)}>
        {last === undefined ? "…" : short(last)} <small>{t(w.perSecond)}</small>
      </div>
      <Spark values={values} label={`${t(title)}: ${t(about)}`} />
    </Card>
  );
}

function sum(...all: (number[] | undefined)[]): number[] {
  const length = Math.min(...all.map((each) => each?.length ?? 0));
  return Array.from({ length }, (_, i) => all.reduce((total, each) => total + (each?.at(i - length) ?? 0), 0));
}
