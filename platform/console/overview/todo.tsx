/** The list of what needs a person: what, which, since when, and the one step to where it is dealt with. */
import type { ComponentChildren } from "preact";
import { Age, Empty, type Meaning, Name, Tag } from "../parts/basics.tsx";
import { call, may } from "../shell/api.ts";
import { link } from "../shell/routes.ts";
import { bytesText, tell, tellError } from "../shell/toasts.tsx";
import { adviceText, reasonText } from "../words/reasons.ts";
import { w as common } from "../words/common.ts";
import { breakText, serverText, taskText } from "../words/server-text.ts";
import { language, type Pair, t } from "../words/words.ts";
import type { Attention } from "./page.tsx";
import { w } from "./words.ts";

const DISK_DAYS = 30;
const DISK_FREE = 0.1;
const UNSTORED = new Set(["ingest", "store"]); // parts without which nothing is stored
export const SEVERITIES: Record<string, { kind: Meaning; word: Pair }> = {
  critical: { kind: "bad", word: w.critical },
  major: { kind: "bad", word: w.major },
  minor: { kind: "warn", word: w.minor },
  warning: { kind: "warn", word: w.warning },
  info: { kind: "info", word: w.info },
};

interface Item {
  key: string;
  kind: Meaning;
  word: string;
  what: ComponentChildren;
  since: string | null;
  step: ComponentChildren;
}

export function Todo({ data, reload }: { data: Attention; reload: () => void }) {
  const items = [...machine(data), ...events(data, reload), ...floods(data), ...stopped(data), ...unknown(data), ...labels(data), ...commands(data)];
  if (!items.length) {
    return (
      <Empty title={t(w.fine)}>
        <p>{t(w.fineDo)}</p>
      </Empty>
    );
  }
  return (
    <ul class="todo">
      {items.map((item) => (
        <li key={item.key}>
          <span>
            <Tag kind={item.kind}>{item.word}</Tag>
          </span>
          <span>{item.what}</span>
          <span class="dim nowrap">{item.since && <Age at={item.since} />}</span>
          <span class="num">{item.step}</span>
        </li>
      ))}
    </ul>
  );
}

function machine(data: Attention): Item[] {
  const step = may("super") ? <a href={link(["machine"])}>{t(common.open)}</a> : null;
  const found = data.quotas.map(quota);
  const disk = data.disk;
  if (disk && ((disk.days_left !== null && disk.days_left < DISK_DAYS) || disk.free_bytes < DISK_FREE * disk.total_bytes)) {
    const percent = Math.round((100 * disk.free_bytes) / Math.max(1, disk.total_bytes));
    const days = disk.days_left === null ? "" : `, ${t(w.diskWhy, { n: Math.floor(disk.days_left) })}`;
    found.push({ key: "disk", kind: "bad", word: t(w.disk), what: t(w.diskLow, { percent }) + days + largest(disk.companies), since: null, step });
  }
  for (const each of disk?.companies.filter(({ is_full }) => is_full) ?? []) {
    const what = t(w.companyFull, { id: each.company_id, has: bytesText(each.series_bytes), most: bytesText(each.most_bytes) });
    const to = <a href={link(["access", "companies"])}>{t(common.open)}</a>;
    found.push({ key: `full-${each.company_id}`, kind: "bad", word: t(w.disk), what, since: null, step: to });
  }
  const failing = data.tasks ?? [];
  if (failing.some((each) => UNSTORED.has(each.name))) found.push({ key: "unstored", kind: "bad", word: t(w.task), what: t(w.unstored), since: null, step });
  for (const each of failing.filter(({ name }) => !UNSTORED.has(name))) {
    found.push({ key: `task-${each.name}`, kind: "bad", word: t(w.task), what: t(w.taskWhy, { name: taskText(each.name), error: serverText(each.error, each.told) }), since: null, step });
  }
  return found;
}

/** Whose time series take most of the disk. */
function largest(companies: NonNullable<Attention["disk"]>["companies"]): string {
  const [most] = [...companies].sort((a, b) => b.series_bytes - a.series_bytes);
  return most?.series_bytes ? `; ${t(w.diskMost, { id: most.company_id, has: bytesText(most.series_bytes) })}` : "";
}

/** What a limit counts, and where there is less to be made of it; super users may raise it. */
const QUOTAS: Record<string, { name: Pair; path: string[] }> = {
  "limits.company_record_bytes": { name: w.quotaRecords, path: ["terminals"] },
  "limits.company_files": { name: w.quotaFiles, path: ["objects"] },
  "limits.company_file_bytes": { name: w.quotaFileBytes, path: ["objects"] },
  "limits.company_events": { name: w.quotaEvents, path: ["events"] },
  "limits.company_event_bytes": { name: w.quotaEventBytes, path: ["events"] },
  "limits.company_series_mib": { name: w.quotaSeries, path: ["terminals"] },
};

function quota({ limit, has, most, percent, days_left }: Attention["quotas"][number]): Item {
  const known = QUOTAS[limit];
  const isSeries = limit.endsWith("series_mib");
  const count = limit.endsWith("bytes") ? bytesText : isSeries ? (n: number) => bytesText(n * 2 ** 20) : (n: number) => n.toLocaleString();
  const days = days_left === null ? "" : `, ${t(w.diskWhy, { n: Math.floor(days_left) })}`;
  return {
    key: `quota-${limit}`,
    kind: percent >= 100 ? "bad" : "warn",
    word: t(w.quota),
    what: (
      <>
        {t(w.quotaWhy, { limit: known ? t(known.name) : limit, has: count(has), most: count(most) }) + days} <span class="why">{t(isSeries ? w.seriesDo : w.quotaDo, { limit })}</span>
      </>
    ),
    since: null,
    step: <a href={link(may("super") ? ["access", "companies"] : (known?.path ?? ["objects"]))}>{t(common.open)}</a>,
  };
}

type OpenEvent = Attention["events"]["entries"][number];

/** Those of one terminal that say the same are one line: what they are about is dealt with once. */
function folded(entries: readonly OpenEvent[]): OpenEvent[][] {
  const found = new Map<string, OpenEvent[]>();
  for (const each of entries) {
    const key = `${each.code}\n${each.terminal_id}\n${each.severity}`;
    found.set(key, [...(found.get(key) ?? []), each]);
  }
  return [...found.values()];
}

/** What was measured; nothing where a signal says no more than that it is there. */
function measured(value: string): string {
  return ["1", "true"].includes(value) ? "" : value;
}

function events(data: Attention, reload: () => void): Item[] {
  const acknowledge = async (ids: number[]) => {
    try {
      await call("acknowledge_events", { ids });
      tell(t(w.acknowledged));
      reload();
    } catch (error) {
      tellError(error);
    }
  };
  return folded(data.events.entries).map((all) => {
    const each = all[0] as OpenEvent;
    const severity = SEVERITIES[each.severity];
    return {
      key: `event-${each.id}`,
      kind: severity?.kind ?? "info",
      word: severity ? t(severity.word) : each.severity,
      what: (
        <>
          <a href={link(["events"], { event: String(each.id) })}>
            <Name text={(language.value === "zh" ? each.label_cn : each.label_en) || each.code} />
          </a>{" "}
          <span class="why">
            <Name text={measured(each.value)} /> <Name text={each.terminal_id} mono /> {all.length > 1 && t(w.several, { n: all.length })}
          </span>
        </>
      ),
      since: each.created,
      step: may("operator") && (
        <button class="small" onClick={() => void acknowledge(all.map((one) => one.id))}>
          {t(w.acknowledge)}
        </button>
      ),
    };
  });
}

const STATES: Record<string, { kind: Meaning; word: Pair }> = {
  refused: { kind: "bad", word: w.refused },
  away: { kind: "warn", word: w.away },
  silent: { kind: "warn", word: w.silent },
};

function why(state: string, cause: string, text: string): string {
  if (state === "silent") return t(w.silentWhy);
  if (state === "refused") return reasonText(cause, text);
  return cause ? t(w.awayWhy, { cause: breakText(cause) }) : t(w.awayNever);
}

/** How the list of terminals finds those of a state. */
const FLOODED: Record<string, Record<string, string>> = { refused: { refused: "1" }, away: { online: "0" }, silent: { online: "silent" } };

function floods(data: Attention): Item[] {
  return data.terminals.floods.map((each) => ({
    key: `flood-${each.state}-${each.site}-${each.cause}`,
    kind: STATES[each.state]?.kind ?? "warn",
    word: t(STATES[each.state]?.word ?? w.away),
    what: (
      <>
        <span class="strong">{t(w.flood, { n: each.count, site: each.site })}</span> <span class="why">{why(each.state, each.cause, "")}</span>
      </>
    ),
    since: each.last_time,
    step: <a href={link(["terminals"], { ...FLOODED[each.state], site: each.site })}>{t(common.open)}</a>,
  }));
}

function stopped(data: Attention): Item[] {
  return data.terminals.entries.map((each) => ({
    key: `terminal-${each.terminal_id}`,
    kind: STATES[each.state]?.kind ?? "warn",
    word: t(STATES[each.state]?.word ?? w.away),
    what: (
      <>
        <a href={link(["terminals", each.terminal_id])}>
          <Name text={each.name || each.terminal_id} />
        </a>{" "}
        <span class="why" title={adviceText(each.cause, each.advice)}>
          {why(each.state, each.cause, each.text)}
        </span>
      </>
    ),
    since: each.since,
    step: <a href={link(["terminals", each.terminal_id])}>{t(each.state === "refused" ? w.why : common.open)}</a>,
  }));
}

function unknown(data: Attention): Item[] {
  const { count, terminal_ids: ids } = data.unknown;
  if (!count) return [];
  return [
    {
      key: "unknown",
      kind: "info",
      word: t(w.unknown),
      what: (
        <>
          {t(w.unknownWhy, { n: count })} <span class="why mono">{ids.slice(0, 3).join(", ").slice(0, 120)}</span>
        </>
      ),
      since: null,
      step: <a href={link(["terminals"], { unknown: "1" })}>{t(common.open)}</a>,
    },
  ];
}

function labels(data: Attention): Item[] {
  return data.labels.entries.map((each) => ({
    key: `label-${each.id}`,
    kind: "info",
    word: t(w.label),
    what: (
      <>
        <a href={link(["objects", each.object_id])}>
          <Name text={(language.value === "zh" ? each.label_cn : each.label_en) || each.code} />
        </a>{" "}
        <span class="why">
          <Name text={each.terminal_id} mono />
        </span>
      </>
    ),
    since: each.opened_at,
    step: <a href={link(["events", "labels"], { label: String(each.id) })}>{t(common.open)}</a>,
  }));
}

function commands(data: Attention): Item[] {
  return data.commands.entries.map((each) => ({
    key: `command-${each.uid}`,
    kind: each.state === "expired" ? "warn" : "info",
    word: t(each.state === "expired" ? w.expired : w.waiting),
    what: (
      <a href={link(["terminals", each.terminal_id], { tab: "commands" })}>
        <Name text={t(w.commandWhy, { command: each.command.slice(0, 80), terminal: each.terminal_id })} />
      </a>
    ),
    since: each.queued,
    step: <a href={link(each.state === "expired" ? ["commands", "expired"] : ["commands"])}>{t(common.open)}</a>,
  }));
}
