/** The fields of a company's record as they are written: how long it keeps what, and what it may have. */
import type { FormField, Values } from "../parts/forms.tsx";
import { t } from "../words/words.ts";
import { w } from "./words.ts";

const MOST_DAYS = 36_500;
const MOST = 2 ** 50;
/** Whether the limits are to be seen: no field of the record. */
const LIMITED = "own_limits";

export function companyFields(): FormField[] {
  return [
    { name: "name", label: t(w.name), isRequired: true, most: 64 },
    { name: "contact", label: t(w.contact), most: 64 },
    { name: "email", label: t(w.email), kind: "email", most: 128 },
    { name: "phone", label: t(w.phone), most: 32 },
    ...days().map(([name, label]) => ({ name, label, kind: "number", least: 0, most: MOST_DAYS }) as FormField),
    { name: "needs_second_factor", label: t(w.needsFactor), kind: "switch" },
    { name: "is_available", label: t(w.open), kind: "switch" },
    { name: LIMITED, label: t(w.ownLimits), kind: "switch", hint: t(w.ownLimitsHint) },
    ...limits().map(([name, label]) => ({ name, label, kind: "number", least: 0, most: MOST, isShown: (values) => values[LIMITED] === "1" }) as FormField),
  ];
}

/** What stands in the fields of a company; of a new one everything is as the platform has it. */
export function companyValues(company: object | null): Values {
  if (!company) return { is_available: "1", ...Object.fromEntries([...days(), ...limits()].map(([name]) => [name, "0"])) };
  const values = Object.fromEntries(Object.entries(company).map(([name, value]) => [name, String(value ?? "")]));
  return { ...values, [LIMITED]: limits().some(([name]) => Number(values[name] ?? 0) > 0) ? "1" : "0" };
}

/** The fields as the platform takes them. */
export function companySent(values: Values): Record<string, unknown> {
  const isNumber = (name: string) => /^(is_|needs_|retention_|limit_)/.test(name);
  const fields = Object.entries(values).filter(([name]) => name !== LIMITED);
  return Object.fromEntries(fields.map(([name, value]) => [name, isNumber(name) ? Number(value || 0) : value]));
}

function days(): [string, string][] {
  return [
    ["retention_events", t(w.eventDays)],
    ["retention_labels", t(w.labelDays)],
    ["retention_commands", t(w.commandDays)],
    ["retention_messages", t(w.messageDays)],
    ["retention_audit", t(w.auditDays)],
    ["retention_series", t(w.seriesDays)],
  ];
}

function limits(): [string, string][] {
  return [
    ["limit_records", t(w.mostRecords)],
    ["limit_record_bytes", t(w.mostRecordBytes)],
    ["limit_files", t(w.mostFiles)],
    ["limit_file_bytes", t(w.mostFileBytes)],
    ["limit_events", t(w.mostEvents)],
    ["limit_event_bytes", t(w.mostEventBytes)],
    ["limit_publish_per_second", t(w.mostPublishes)],
    ["limit_queued_messages", t(w.mostQueued)],
    ["limit_queued_bytes", t(w.mostQueuedBytes)],
    ["limit_retained_messages", t(w.mostRetained)],
    ["limit_retained_bytes", t(w.mostRetainedBytes)],
    ["limit_subscriptions", t(w.mostSubscriptions)],
    ["limit_rules", t(w.mostRules)],
    ["limit_rule_conditions", t(w.mostConditions)],
    ["limit_rule_commands_per_hour", t(w.mostRuleCommands)],
    ["limit_api_keys", t(w.mostKeys)],
    ["limit_authorities", t(w.mostAuthorities)],
    ["limit_answer_bytes", t(w.mostAnswerBytes)],
    ["limit_series_mib", t(w.mostSeries)],
  ];
}
