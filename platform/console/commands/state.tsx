/** Where a command stands, as every page shows it, and why. */
import { type Meaning, Name, Tag } from "../parts/basics.tsx";
import { keptReason } from "../words/kept-reasons.ts";
import { language, type Pair, t } from "../words/words.ts";
import { w } from "./words.ts";

const STATES: Record<string, { kind: Meaning; word: Pair }> = {
  queued: { kind: "info", word: w.queued },
  sent: { kind: "info", word: w.sent },
  delivered: { kind: "good", word: w.delivered },
  answered: { kind: "good", word: w.answered },
  expired: { kind: "warn", word: w.expired },
  failed: { kind: "bad", word: w.failed },
};

/** The state as a word. */
export function CommandState({ state }: { state: string }) {
  const known = STATES[state];
  return <Tag kind={known?.kind ?? ""}>{known ? t(known.word) : state}</Tag>;
}

/** Why it is in its state; nothing where the state says it all. */
export function CommandReason({ reason }: { reason: string }) {
  return reason ? <Name text={keptReason(reason, language.value)} /> : null;
}
