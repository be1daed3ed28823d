/** The logbook of an object: all that happened to it, the latest first, as it happens. */
import type { ComponentChildren } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import type { Result } from "terrazzo-client";
import { actionWord } from "../audit/action-words.ts";
import { Age, Card, Empty, type Meaning, Name, Problem, Tag } from "../parts/basics.tsx";
import { call, may } from "../shell/api.ts";
import { clock } from "../shell/clock.ts";
import { useBusy, useLive, useSeldom } from "../shell/hooks.ts";
import { link, replaceQuery, route } from "../shell/routes.ts";
import { w as common } from "../words/common.ts";
import { breakText } from "../words/server-text.ts";
import { language, type Pair, t } from "../words/words.ts";
import { keyOf, merged } from "./log-entries.ts";
import { w } from "./log-words.ts";
import { categoryWord } from "./record-words.ts";

export type LogEntry = Result<"get_object_log">["data"][number];

const PAGE = 50;
const SETTLE_MS = 1_000;
const KINDS = {
  events: ["event"],
  labels: ["label_opened", "label_closed"],
  commands: ["command"],
  records: ["service", "offline", "file"],
  terminals: ["presence", "out_of_service"],
  changes: ["change"],
} as const;
type KindName = keyof typeof KINDS;
const WHAT: Record<string, { kind: Meaning; word: Pair }> = {
  event: { kind: "warn", word: w.event },
  label_opened: { kind: "warn", word: w.labelOpened },
  label_closed: { kind: "good", word: w.labelClosed },
  command: { kind: "info", word: w.command },
  change: { kind: "", word: w.change },
  service: { kind: "info", word: w.service },
  offline: { kind: "info", word: w.offlineData },
  file: { kind: "", word: w.file },
  out_of_service: { kind: "warn", word: w.outOfService },
  presence: { kind: "", word: w.connection },
};
const SEVERE = ["major", "critical"];

interface Read {
  rows: LogEntry[];
  next: string;
}

export function Logbook({ id }: { id: string }) {
  const shown = route.value.query.get("kind") ?? "";
  const kinds = [...(KINDS[shown as KindName] ?? [])];
  const [read, setRead] = useState<Read | null>(null);
  const [error, setError] = useState<unknown>();
  const [isBusy, setBusy] = useState(false);
  const turn = useRef(0);
  const ask = async (before: string): Promise<void> => {
    const mine = turn.current;
    setBusy(true);
    try {
      const found = await call("get_object_log", { object_id: id, page_size: PAGE, kinds, ...(before ? { before } : {}) });
      if (mine !== turn.current) return;
      setError(undefined);
      setRead((was) => (before && was ? { rows: [...was.rows, ...found.data], next: found.next } : merged(was, { rows: found.data, next: found.next })));
    } catch (failure) {
      if (mine === turn.current) setError(failure);
    }
    setBusy(false);
  };
  useEffect(() => {
    turn.current += 1;
    setRead(null);
    void ask("");
  }, [id, shown]);
  useBusy(!read && error === undefined);
  const again = useSeldom(() => void ask(""), SETTLE_MS);
  useLive({ kinds: ["event", "retainer", "command", "object", "terminal"], object_id: id }, again, again);
  return (
    <Card>
      <div class="tools">
        <Chosen shown={shown} />
        <span class="dim">{t(w.live)}</span>
      </div>
      {error !== undefined && <Problem error={error} retry={() => void ask("")} />}
      {!read && error === undefined && <p class="dim">{t(common.loading)}</p>}
      {read && !read.rows.length && <Empty title={t(shown ? common.nothing : w.nothing)}>{t(shown ? common.nothingDo : w.nothingDo)}</Empty>}
      {read && <Days id={id} rows={read.rows} />}
      {read?.next && (
        <p class="more">
          <button disabled={isBusy} onClick={() => void ask(read.next)}>
            {t(w.earlier)}
          </button>
        </p>
      )}
    </Card>
  );
}

function Chosen({ shown }: { shown: string }) {
  const names: [string, Pair][] = [["", common.all], ["events", w.events], ["labels", w.labels], ["commands", w.commands], ["records", w.records], ["terminals", w.terminals], ...(may("admin") ? [["changes", w.changes] as [string, Pair]] : [])];
  return (
    <div class="line log-kinds" role="group" aria-label={t(common.filter)}>
      {names.map(([name, word]) => (
        <button key={name} class="small" aria-pressed={shown === name} onClick={() => replaceQuery({ kind: name || undefined })}>
          {t(word)}
        </button>
      ))}
    </div>
  );
}

/** Entries below the day on which they happened. */
function Days({ id, rows }: { id: string; rows: LogEntry[] }) {
  const days = new Map<string, LogEntry[]>();
  for (const row of rows) {
    const day = row.time.slice(0, 10);
    days.set(day, [...(days.get(day) ?? []), row]);
  }
  return (
    <>
      {[...days].map(([day, entries]) => (
        <section key={day} class="log-day">
          <h2>
            {day} <span class="dim">{clock.offset.value}</span>
          </h2>
          <ul class="log">
            {entries.map((each) => (
              <Entry key={keyOf(each)} id={id} row={each} />
            ))}
          </ul>
        </section>
      ))}
    </>
  );
}

function Entry({ id, row }: { id: string; row: LogEntry }) {
  const what = WHAT[row.kind] ?? { kind: "" as Meaning, word: w.change };
  return (
    <li>
      <span class="mono dim nowrap">{row.time.slice(11, 19)}</span>
      <Tag kind={SEVERE.includes(row.severity) ? "bad" : what.kind}>{t(what.word)}</Tag>
      <span class="said">{told(row, placeOf(id, row))}</span>
      <span class="dim">
        {row.username && <Name text={row.username} />} {row.terminal_id && <a href={link(["terminals", row.terminal_id])}><Name mono text={row.terminal_id} /></a>}
      </span>
      <span class="dim nowrap num">
        <Age at={row.time} />
      </span>
    </li>
  );
}

/** Where it is dealt with. */
function placeOf(id: string, row: LogEntry): string {
  switch (row.kind) {
    case "event":
      return link(["events"], { state: "all", event: String(row.id) });
    case "label_opened":
    case "label_closed":
      return link(["events", "labels"], { label: String(row.id) });
    case "command":
      return link(["terminals", row.terminal_id], { tab: "commands" });
    case "change":
      return link(["audit"], { entity: "object", uid: id });
    case "service":
    case "offline":
      return link(["objects", id], { record: `${row.kind}-${row.id}` });
    case "file":
      return link(["objects", id], { record: "file" });
    default:
      return link(["terminals", row.terminal_id]);
  }
}

function told(row: LogEntry, place: string): ComponentChildren {
  const label = (language.value === "zh" ? row.label_cn || row.label_en : row.label_en || row.label_cn) || row.code;
  const named = (name: string, mono = false) => (
    <a href={place}>
      <Name mono={mono} text={name} />
    </a>
  );
  switch (row.kind) {
    case "command":
      return (
        <>
          {named(row.value ? `${row.code} = ${row.value}` : row.code, true)} <span class="dim">{stateText(row.state)}</span>
        </>
      );
    case "change":
      return (
        <>
          <a href={place}>{row.code === "update" ? t(w.updated) : actionWord(row.code)}</a> {row.code !== "create" && <Name mono text={row.value} />}
        </>
      );
    case "service":
      return (
        <>
          {named([categoryWord(row.code), label].filter(Boolean).join(": "))} <Name text={row.value} />
        </>
      );
    case "offline":
      return named(`${label} = ${row.value}`);
    case "file":
      return (
        <>
          {named(row.value)} <span class="dim">{t(row.code === "removed" ? w.fileRemoved : w.fileAttached)}</span>
        </>
      );
    case "out_of_service":
      return (
        <>
          <a href={place}>{t(row.code === "ended" ? w.backInService : w.putOutOfService)}</a> <Name text={row.value} />
        </>
      );
    case "presence":
      return (
        <>
          <a href={place}>{turnText(row)}</a> {row.state === "offline" && <Name text={breakText(row.value)} />}
        </>
      );
    default:
      return (
        <>
          {named(label)} <Name mono text={row.value} /> {row.kind === "event" && <span class="dim">{stateText(row.state)}</span>}
        </>
      );
  }
}

const STATE_WORDS: Record<string, Pair> = {
  raised: w.raised,
  acknowledged: w.acknowledged,
  cleared: w.cleared,
  queued: w.queued,
  sent: w.sent,
  delivered: w.delivered,
  answered: w.answered,
  failed: w.failed,
  expired: w.expired,
};

function stateText(state: string): string {
  const word = STATE_WORDS[state];
  return word ? t(word) : state;
}

function turnText({ state, value }: LogEntry): string {
  if (state === "flapping") return t(w.flapped, { n: value });
  return t(state === "online" ? w.came : w.went);
}
