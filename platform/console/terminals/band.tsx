/** When a terminal was connected, as a band over a week, and why each connection ended. */
import type { Result } from "terrazzo-client";
import { Card, Problem } from "../parts/basics.tsx";
import { call } from "../shell/api.ts";
import { clock } from "../shell/clock.ts";
import { useLoad } from "../shell/hooks.ts";
import { t } from "../words/words.ts";
import { breakText } from "./breaks.ts";
import { w } from "./words.ts";

const DAY_MS = 86_400_000;
const DAYS = 7;

const LEGEND = [["online", w.online], ["offline", w.offline], ["flapping", w.bandUnsteady], ["unknown", w.unknownState]] as const;

type Band = Result<"get_presence_list">[number];

export function PresenceBand({ uid, turn }: { uid: string; turn: number }) {
  const { data, error } = useLoad(
    async (abort) => {
      const end = clock.now.value;
      const times = { start_time: clock.ago(DAYS * DAY_MS), end_time: clock.format(end) };
      return { end, bands: await call("get_presence_list", { terminal_id: uid, ...times }, abort) };
    },
    [uid, turn],
    60_000,
  );
  return (
    <Card title={t(w.band)}>
      {!!error && <Problem error={error} />}
      {data && (data.bands.length ? <Drawn bands={data.bands} endMs={data.end} /> : <p class="dim">{t(w.bandNone)}</p>)}
    </Card>
  );
}

function Drawn({ bands, endMs }: { bands: Band[]; endMs: number }) {
  const startMs = endMs - DAYS * DAY_MS;
  const x = (ms: number) => (100 * Math.min(Math.max(ms - startMs, 0), endMs - startMs)) / (endMs - startMs);
  const days = Array.from({ length: DAYS }, (_, i) => clock.format(startMs + (i + 0.5) * DAY_MS).slice(5, 10));
  const breaks = bands.filter((each) => each.state === "offline" && each.reason).slice(-4).reverse();
  return (
    <>
      <svg class="band" viewBox="0 0 100 10" preserveAspectRatio="none" role="img" aria-label={bands.map(told).join("; ").slice(0, 500)}>
        {bands.map((each) => {
          const from = x(clock.parse(each.start));
          const to = x(each.end ? clock.parse(each.end) : endMs);
          return (
            <rect key={each.start} class={each.state} x={from} width={Math.max(0.15, to - from)} y={0} height={10}>
              <title>{told(each)}</title>
            </rect>
          );
        })}
      </svg>
      <div class="band-days dim">
        {days.map((day) => (
          <span key={day}>{day}</span>
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
      <ul>
        {breaks.map((each) => (
          <li key={each.start} class="dim">
            {told(each)}
          </li>
        ))}
      </ul>
    </>
  );
}

function told(band: Band): string {
  const state = { online: t(w.online), offline: t(w.offline), flapping: t(w.bandFlapping, { n: band.changes }), unknown: t(w.unknownState) }[band.state];
  return `${band.start} – ${band.end ?? ""} ${state}${band.reason ? `: ${breakText(band.reason)}` : ""}`;
}
