/** Finished periods that are computed again: asked for here, and how far that is, whoever asked and wherever one was meanwhile. */
import { useEffect, useState } from "preact/hooks";
import type { Result } from "terrazzo-client";
import { HOUR_MS } from "../charts/link.ts";
import { FormDialog, type Values } from "../parts/forms.tsx";
import { call } from "../shell/api.ts";
import { clock } from "../shell/clock.ts";
import { useLoad } from "../shell/hooks.ts";
import { tell } from "../shell/toasts.tsx";
import { t } from "../words/words.ts";
import type { Script } from "./scripts.ts";
import { w } from "./words.ts";

type Left = Result<"get_recompute_progress">["objects"];
type Named = { id: string; name: string };

const AGAIN_MS = 7 * 24 * HOUR_MS;
const EVERY_MS = 2_000;

/** The most seconds that a script had to do since it last had none: what is done of it is seen when one comes back. */
const most = new Map<string, number>();

export interface Again {
  left: Left;
  seconds: number;
  most: number;
  /** How often it came to an end while the page was shown: what stands there is old then. */
  finished: number;
  asked: () => void;
}

const secondsOf = (left: Left): number => left.reduce((sum, each) => sum + each.seconds, 0);

/** What a script has still to compute again, followed while there is some. */
export function useAgain(uid: string): Again {
  const [isUnderWay, setUnderWay] = useState(false);
  const [finished, setFinished] = useState(0);
  const { data, reload } = useLoad((abort) => (uid ? call("get_recompute_progress", { script_uid: uid }, abort) : Promise.resolve({ objects: [] })), [uid], isUnderWay ? EVERY_MS : 0);
  const left = data?.objects ?? [];
  const seconds = secondsOf(left);
  if (left.length) most.set(uid, Math.max(most.get(uid) ?? 0, seconds));
  useEffect(() => {
    if (!data || isUnderWay === left.length > 0) return;
    setUnderWay(!isUnderWay);
    if (!isUnderWay) return;
    most.delete(uid);
    setFinished((n) => n + 1);
    tell(t(w.recomputedAll));
  }, [data]);
  const asked = () => {
    setUnderWay(true); // it may be done before it is read for the first time
    reload();
  };
  return { left, seconds, most: most.get(uid) ?? seconds, finished, asked };
}

/** How far it is; nothing where all is done. */
export function AgainProgress({ again: { left, seconds, most: all }, script, objects }: { again: Again; script: Script; objects: readonly Named[] }) {
  const first = left[0];
  if (!first) return null;
  const from = left.map((each) => each.start_time).sort()[0] ?? "";
  const until = left.map((each) => each.end_time).sort().at(-1) ?? "";
  const name = objects.find((each) => each.id === first.object_id)?.name ?? first.object_id;
  return (
    <div class="card line again" role="status">
      <span>{t(w.recomputing, { n: left.length, name: name.slice(0, 80), from: from.slice(0, 16).replace("T", " "), until: until.slice(0, 16).replace("T", " ") })}</span>
      <progress aria-label={t(w.recomputingShort)} value={all - seconds} max={all || 1} />
      <span class="dim">{t(script.is_active ? w.recomputingLeave : w.recomputeWaits)}</span>
    </div>
  );
}

/** Computes finished periods again, as after values that came late or a row that was wrong. */
export function AgainButton({ script, objects, onAsked }: { script: Script; objects: readonly Named[]; onAsked: () => void }) {
  const [isOpen, setOpen] = useState(false);
  const now = clock.now.peek();
  const ask = async ({ object_id, start_time = "", end_time = "" }: Values): Promise<void> => {
    await call("recompute_statistics", { script_uid: script.uid, start_time, end_time, ...(object_id ? { object_id } : {}) });
    setOpen(false);
    tell(t(w.recomputed));
    onAsked();
  };
  return (
    <>
      <button onClick={() => setOpen(true)}>{t(w.recompute)}</button>
      {isOpen && (
        <FormDialog
          draft={`recompute ${script.uid}`}
          title={t(w.recomputeNamed, { name: script.name.slice(0, 64) })}
          submit={t(w.recompute)}
          initial={{ start_time: clock.format(now - AGAIN_MS).slice(0, 19), end_time: clock.format(now).slice(0, 19) }}
          fields={[
            { name: "start_time", label: t(w.recomputeFrom), isRequired: true, most: 40, hint: t(w.recomputeHint) },
            { name: "end_time", label: t(w.recomputeUntil), isRequired: true, most: 40 },
            { name: "object_id", label: t(w.object), kind: "choice", options: [["", t(w.allObjects)], ...objects.map((each) => [each.id, each.name.slice(0, 100)] as const)] },
          ]}
          onSubmit={ask}
          onClose={() => setOpen(false)}
        />
      )}
    </>
  );
}
