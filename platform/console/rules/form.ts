/** What of a rule is written in the console; the rest stays as it is. */
import type { FormField, Values } from "../parts/forms.tsx";
import { SEVERITIES } from "../overview/todo.tsx";
import { w as common } from "../words/common.ts";
import { type Pair, t } from "../words/words.ts";
import type { Rule } from "./rules.tsx";
import { w } from "./words.ts";

export const KINDS: readonly (readonly [value: string, word: Pair])[] = [
  ["event", w.event],
  ["opened,closed", w.labels],
  ["offline,back", w.offline],
  ["silent,back", w.silent],
  ["refused", w.refused],
  ["object_offline,back", w.objectOffline],
  ["object_silent,back", w.objectSilent],
  ["outage", w.outage],
];

export const CHANNELS: readonly (readonly [value: string, word: Pair])[] = [
  ["email", w.email],
  ["sms", w.sms],
  ["webhook", w.webhook],
  ["wechat", w.wechat],
  ["android", w.android],
  ["ios", w.ios],
  ["none", w.nobody],
];

const LISTS = ["kinds", "codes", "object_list", "terminal_list", "tags", "recipients"] as const;
const NUMBERS = ["minutes", "repeat_s", "repeat_times", "project_id"] as const;
const TEXTS = ["name", "severity", "channel", "url", "secret", "subject", "template", "quiet_start", "quiet_end"] as const;

const isOfEvents = (kinds: string): boolean => /event|opened/.test(kinds);
const isOfTerminals = (kinds: string): boolean => /(^|,)(offline|silent|refused)/.test(kinds);
/** Shown where the rule is about that, or tells by that: the rest would mean nothing. */
const about = (isMeant: (kinds: string) => boolean) => ({ isShown: (values: Values) => isMeant(values["kinds"] ?? "") });
const by = (isMeant: (channel: string) => boolean) => ({ isShown: (values: Values) => isMeant(values["channel"] ?? "") });
const isMessenger = (channel: string): boolean => !["webhook", "none"].includes(channel);
const isHook = (channel: string): boolean => channel === "webhook";

export function fieldsOf(rule: Rule | null): FormField[] {
  const kinds = rule ? (rule.kinds as string[]).join(",") : "";
  const known = KINDS.map(([value, word]) => [value, t(word)] as const);
  const severities = Object.entries(SEVERITIES).map(([value, each]) => [value, t(each.word)] as const);
  return [
    { name: "name", label: t(common.name), isRequired: true, most: 64 },
    { name: "kinds", label: t(w.tells), kind: "choice", options: kinds && !KINDS.some(([value]) => value === kinds) ? [...known, [kinds, kinds]] : known },
    { name: "codes", label: t(w.codes), most: 4_096, ...about(isOfEvents) },
    { name: "object_list", label: t(w.objects), most: 4_096, ...about((each) => each !== "outage") },
    { name: "severity", label: t(w.severity), kind: "choice", options: [["", t(w.anySeverity)], ...severities], ...about((each) => each.includes("event")) },
    { name: "terminal_list", label: t(w.terminals), most: 4_096, ...about(isOfTerminals) },
    { name: "tags", label: t(w.tags), most: 1_024, ...about(isOfTerminals) },
    { name: "minutes", label: t(w.minutes), kind: "number", least: 1, most: 10_080, ...about((each) => !isOfEvents(each)) },
    { name: "channel", label: t(w.channel), kind: "choice", options: CHANNELS.map(([value, word]) => [value, t(word)] as const) },
    { name: "recipients", label: t(w.recipients), most: 4_096, ...by(isMessenger) },
    { name: "project_id", label: t(w.project), kind: "number", least: 0, ...by(isMessenger) },
    { name: "url", label: t(w.url), kind: "url", most: 1_024, ...by(isHook), ...(rule ? { hint: t(w.keep) } : {}) },
    { name: "secret", label: t(w.secret), kind: "password", least: 16, most: 128, ...by(isHook), ...(rule ? { hint: t(w.keep) } : {}) },
    { name: "subject", label: t(w.subject), most: 255, ...by((each) => each !== "none") },
    { name: "template", label: t(w.template), kind: "long", most: 4_096, ...by((each) => each !== "none") },
    { name: "repeat_s", label: t(w.repeat), kind: "number", least: 0, most: 604_800 },
    { name: "repeat_times", label: t(w.times), kind: "number", least: 0, most: 1_000 },
    { name: "quiet_start", label: t(w.quiet), most: 5 },
    { name: "quiet_end", label: t(w.quietEnd), most: 5 },
  ];
}

export function initialOf(rule: Rule): Values {
  const record = rule as unknown as Record<string, unknown>;
  return {
    ...Object.fromEntries(LISTS.map((name) => [name, ((record[name] as unknown[] | null) ?? []).join(",")])),
    ...Object.fromEntries([...NUMBERS, ...TEXTS].map((name) => [name, String(record[name] ?? "")])),
    secret: "",
  };
}

/** As the gateway takes it; what is not said is left out. */
export function sentOf(values: Values): Record<string, unknown> {
  const isTerminals = isOfTerminals(values["kinds"] ?? "");
  const isEvents = isOfEvents(values["kinds"] ?? "");
  const left = new Set<string>([
    ...(isEvents ? ["minutes"] : ["codes", "severity"]),
    ...(isTerminals ? [] : ["terminal_list", "tags"]),
    ...["url", "secret"].filter((name) => !values[name]),
    ...NUMBERS.filter((name) => !values[name]),
  ]);
  const sent: Record<string, unknown> = {};
  for (const name of TEXTS) sent[name] = values[name] ?? "";
  for (const name of LISTS) sent[name] = (values[name] ?? "").split(",").map((each) => each.trim()).filter(Boolean);
  for (const name of NUMBERS) sent[name] = Number(values[name]);
  return Object.fromEntries(Object.entries(sent).filter(([name]) => !left.has(name)));
}
