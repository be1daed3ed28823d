/** What needs a person comes first; rates come after. */
import { useEffect } from "preact/hooks";
import type { Result } from "terrazzo-client";
import { Bars, Card, dayBars, Empty, Head, Problem } from "../parts/basics.tsx";
import { call, session } from "../shell/api.ts";
import { useLive, useLoad, useSeldom } from "../shell/hooks.ts";
import { titles } from "../shell/pages.ts";
import { go, link } from "../shell/routes.ts";
import { needed } from "../shell/title.ts";
import { w as common } from "../words/common.ts";
import { t } from "../words/words.ts";
import { Rates } from "./rates.tsx";
import { SoundSwitch } from "./sound.tsx";
import { Todo } from "./todo.tsx";
import { waiting } from "./watch.tsx";
import { w } from "./words.ts";

export type Attention = Result<"get_attention">;

const READ_MS = 60_000; // ages of labels change though nothing happens
const SETTLE_MS = 3_000; // what happens together is read once
const ENTRIES = 6;
const DAYS = 14;

export function Page() {
  const who = session.value;
  const { data, error, reload } = useLoad((abort) => call("get_attention", { entries: ENTRIES }, abort), [], READ_MS);
  const soon = useSeldom(reload, SETTLE_MS);
  useLive({ kinds: ["attention"] }, soon, soon);
  useEffect(() => {
    if (data) needed.value = waiting(data);
  }, [data]);
  return (
    <>
      <Head title={t(titles.overview)} sub={who && t(who.is_super ? w.whoseAll : w.whose, { company: who.company })}>
        <SoundSwitch />
      </Head>
      {!!error && <Problem error={error} retry={reload} />}
      {data ? <Shown data={data} reload={reload} /> : !error && <p class="dim">{t(common.loading)}</p>}
    </>
  );
}

function Shown({ data, reload }: { data: Attention; reload: () => void }) {
  if (!data.terminals.total && !data.unknown.count) {
    return (
      <Empty title={t(w.first)}>
        <p>{t(w.firstDo)}</p>
        <a href={link(["terminals"])}>{t(w.toTerminals)}</a>
      </Empty>
    );
  }
  return (
    <div class="grid">
      <Card title={t(w.attention)} class="span8">
        <Todo data={data} reload={reload} />
      </Card>
      <div class="span4 stack">
        <Terminals data={data} />
        <Open data={data} />
      </div>
      <Rates />
      <Days />
    </div>
  );
}

function Terminals({ data }: { data: Attention }) {
  const { online, total, away, silent, refused, out_of_service } = data.terminals;
  const rows = [
    { dot: "off", name: t(w.offline), n: total - online, to: link(["terminals"], { online: "0" }) },
    { dot: "bad", name: t(w.stopped), n: away, to: link(["terminals"], { online: "0" }) },
    { dot: "warn", name: t(w.silent), n: silent, to: link(["terminals"], { online: "silent" }) },
    { dot: "bad", name: t(w.refused), n: refused, to: link(["terminals"], { refused: "1" }) },
    ...(out_of_service ? [{ dot: "off", name: t(w.outOfService), n: out_of_service, to: link(["terminals"], { out: "1" }) }] : []),
  ];
  return (
    <Card title={t(w.terminals)} more={<a href={link(["terminals"])}>{t(common.all)}</a>}>
      <div class="figure">
        {online.toLocaleString()} <small>{t(w.ofOnline, { total })}</small>
      </div>
      <table>
        <tbody>
          {rows.map((row) => (
            <tr key={row.name}>
              <td>
                <span class="line">
                  <i class={`dot ${row.dot}`} /> {row.name}
                </span>
              </td>
              <td class="num">{row.n ? <a href={row.to}>{row.n.toLocaleString()}</a> : "0"}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </Card>
  );
}

function Open({ data }: { data: Attention }) {
  const { labels, events, commands } = data;
  const old = (labels.by_age["week"] ?? 0) + (labels.by_age["older"] ?? 0);
  const rows = [
    { name: t(w.events), n: events.count, more: events.is_more, note: "", to: link(["events"]) },
    { name: t(w.labels), n: labels.count, more: labels.is_more, note: old ? t(w.olderThanDay, { n: old }) : "", to: link(["events", "labels"]) },
    { name: t(w.commands), n: commands.waiting, more: false, note: commands.expired ? <a href={link(["commands", "expired"])}>{t(w.expiredToday, { n: commands.expired })}</a> : "", to: link(["commands"]) },
  ];
  return (
    <Card title={t(w.openNow)}>
      <table>
        <tbody>
          {rows.map((row) => (
            <tr key={row.name}>
              <td>
                <a href={row.to}>{row.name}</a>
              </td>
              <td class="dim num">{row.note}</td>
              <td class="num strong">{`${row.n.toLocaleString()}${row.more ? "+" : ""}`}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </Card>
  );
}

function Days() {
  const { data } = useLoad((abort) => call("get_event_quantity_by_day", { day: DAYS }, abort), [], 5 * READ_MS);
  if (!data) return null;
  return (
    <Card title={t(w.byDay)} class="days" more={<a href={link(["events"])}>{t(common.all)}</a>}>
      <Bars label={t(w.byDay)} bars={dayBars(data)} onChoose={(day) => go(link(["events"], { state: "all", day }))} />
    </Card>
  );
}
