/** The broker's rates while somebody looks, and its counters since the start; of all companies together. */
import { useRef, useState } from "preact/hooks";
import { Card, Problem, short, Spark } from "../parts/basics.tsx";
import { call } from "../shell/api.ts";
import { useLoad, useSecondReading } from "../shell/hooks.ts";
import { t } from "../words/words.ts";
import { counterWord } from "./counter-words.ts";
import { w } from "./words.ts";

const EVERY_MS = 2_000;
const MOST = 150;
const SHOWN = [
  { title: w.messagesIn, names: ["messages_in_qos0", "messages_in_qos1", "messages_in_qos2"] },
  { title: w.messagesOut, names: ["messages_out"] },
  { title: w.bytesIn, names: ["bytes_in"] },
  { title: w.bytesOut, names: ["bytes_out"] },
];

export function Now() {
  const [series, setSeries] = useState<number[][]>(SHOWN.map(() => []));
  const before = useRef<{ atMs: number; values: number[] } | null>(null);
  const { data, error, reload } = useLoad(
    async (abort) => {
      const counters = (await call("get_broker_status", {}, abort)).counters as Record<string, number>;
      const values = SHOWN.map((each) => each.names.reduce((sum, name) => sum + (counters[name] ?? 0), 0));
      const now = performance.now();
      const last = before.current;
      before.current = { atMs: now, values };
      if (last) {
        const seconds = Math.max(0.001, (now - last.atMs) / 1_000);
        setSeries((all) => all.map((each, i) => [...each, Math.max(0, ((values[i] ?? 0) - (last.values[i] ?? 0)) / seconds)].slice(-MOST)));
      }
      return counters;
    },
    [],
    EVERY_MS,
  );
  useSecondReading(reload);
  return (
    <div class="grid">
      {!!error && <Problem error={error} retry={reload} />}
      {SHOWN.map((each, i) => (
        <Card key={i} title={t(each.title)} class="span3">
          <div class="figure">
            {series[i]?.length ? short(series[i].at(-1) ?? 0) : "…"} <small>{t(w.perSecond)}</small>
          </div>
          <Spark values={series[i] ?? []} label={t(each.title)} />
        </Card>
      ))}
      <Card title={t(w.counters)} more={<span class="dim">{t(w.allOfMachine)}</span>}>
        <div class="counters">
          {Object.entries(data ?? {}).map(([name, value]) => (
            <div key={name}>
              <span class="dim">{counterWord(name)}</span> <span class="num">{value.toLocaleString()}</span>
            </div>
          ))}
        </div>
      </Card>
    </div>
  );
}
