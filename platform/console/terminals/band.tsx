/** When a terminal was connected, as a band over a week, or a day where no more is known, and why each connection ended. */
import { useState } from "preact/hooks";
import type { Result } from "terrazzo-client";
import { Card, Problem, sinceText } from "../parts/basics.tsx";
import { call } from "../shell/api.ts";
import { clock } from "../shell/clock.ts";
import { useLoad } from "../shell/hooks.ts";
import { t } from "../words/words.ts";
import { breakText } from "../words/server-text.ts";
import { w } from "./words.ts";

const DAY_MS = 86_400_000;
const DAYS = 7;
const PARTS_OF_DAY = 6;
const BREAKS_FIRST = 4;
const NOW_MS = 5_000; // times are told in whole seconds, and the clock here may be a little behind: what happens now is in it

const LEGEND = [["online", w.online], ["offline", w.offline], ["flapping", w.bandUnsteady], ["unknown", w.unknownState]] as const;

type Band = Result<"get_presence_list">[number];

export function PresenceBand({ uid, turn }: { uid: string; turn: number }) {
  const { data, error } = useLoad(
    async (abort) => {
      const end = clock.now.value;
      const times = { start_time: clock.ago(DAYS * DAY_MS), end_time: clock.format(end + NOW_MS) };
      return { end, bands: await call("get_presence_list", { terminal_id: uid, ...times }, abort) };
    },
    [uid, turn],
    60_000,
  );
  const spanMs = data ? spanOf(data.bands, data.end) : DAYS * DAY_MS;
  return (
    <Card title={t(spanMs > DAY_MS ? w.band : w.bandDay)}>
      {!!error && <Problem error={error} />}
      {data && (data.bands.length ? <Drawn bands={data.bands} endMs={data.end} spanMs={spanMs} /> : <p class="dim">{t(w.bandNone)}</p>)}
    </Card>
  );
}

/** A week, or the last day where nothing is known of the days before: else one would look at an empty band. */
function spanOf(bands: readonly Band[], endMs: number): number {
  const known = bands.find((each) => each.state !== "unknown");
  return known && endMs - clock.parse(known.start) < DAY_MS ? DAY_MS : DAYS * DAY_MS;
}

/** Names of the parts below the band: days, or times of a day. */
function partNames(startMs: number, spanMs: number): string[] {
  const isWeek = spanMs > DAY_MS;
  const parts = isWeek ? DAYS : PARTS_OF_DAY;
  const [from, to] = isWeek ? [5, 10] : [11, 16];
  return Array.from({ length: parts }, (_, i) => clock.format(startMs + ((i + 0.5) * spanMs) / parts).slice(from, to));
}

function Drawn({ bands, endMs, spanMs }: { bands: Band[]; endMs: number; spanMs: number }) {
  const startMs = endMs - spanMs;
  const x = (ms: number) => (100 * Math.min(Math.max(ms - startMs, 0), endMs - startMs)) / (endMs - startMs);
  const shown = bands.filter((each) => !each.end || clock.parse(each.end) > startMs);
  return (
    <>
      <svg class="band" viewBox="0 0 100 10" preserveAspectRatio="none" role="img" aria-label={bands.map(told).join("; ").slice(0, 500)}>
        {shown.map((each, i) => {
          const from = x(clock.parse(each.start));
          const to = x(each.end ? clock.parse(each.end) : endMs);
          return (
            <rect key={i} class={each.state} x={from} width={Math.max(0.15, to - from)} y={0} height={10}>
              <title>{told(each)}</title>
            </rect>
          );
        })}
      </svg>
      <div class="band-days dim">
        {partNames(startMs, spanMs).map((name) => (
          <span key={name}>{name}</span>
        ))}
      </div>
      <p class="line dim band-legend">
        {LEGEND.map(([state, word]) => (
          <span key={state} class="line">
            <svg class="band" viewBox="0 0 10 10" aria-hidden="true">
              <rect class={state} width={10} height={10} />
            </svg>
            {t(word)}
          </span>
        ))}
      </p>
      <Breaks bands={bands} endMs={endMs} />
    </>
  );
}

/** The newest breaks with their reasons, all of them when asked for. */
function Breaks({ bands, endMs }: { bands: readonly Band[]; endMs: number }) {
  const [isAll, setAll] = useState(false);
  const breaks = bands.filter((each) => each.state === "offline" || each.state === "flapping").reverse();
  const lasted = (each: Band): string => sinceText((each.end ? clock.parse(each.end) : endMs) - clock.parse(each.start));
  return (
    <>
      <ul class={isAll ? "breaks" : undefined} aria-label={t(w.breaks)} tabIndex={isAll ? 0 : undefined}>
        {(isAll ? breaks : breaks.slice(0, BREAKS_FIRST)).map((each, i) => (
          <li key={i} class="dim">
            {t(w.bandLasted, { told: told(each), time: lasted(each) })}
          </li>
        ))}
      </ul>
      {breaks.length > BREAKS_FIRST && !isAll && (
        <button class="small" onClick={() => setAll(true)}>
          {t(w.bandAll, { n: breaks.length })}
        </button>
      )}
    </>
  );
}

function told(band: Band): string {
  const state = { online: t(w.online), offline: t(w.offline), flapping: t(w.bandFlapping, { n: band.changes }), unknown: t(w.unknownState) }[band.state];
  return `${band.start} – ${band.end ?? ""} ${state}${band.reason ? `: ${breakText(band.reason)}` : ""}`;
}
