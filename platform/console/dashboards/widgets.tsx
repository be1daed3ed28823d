/** Widgets, a function for each type of the document; what each means stands in docs/dashboards.md. */
import type { ComponentChildren, JSX } from "preact";
import { useEffect, useMemo, useState } from "preact/hooks";
import { Chart } from "../charts/chart.tsx";
import { FIRST_VIEW, type ChartView } from "../charts/link.ts";
import type { Curve } from "../charts/curve.ts";
import { numberText } from "../charts/value-axis.ts";
import { Age, Name } from "../parts/basics.tsx";
import { curvesOf } from "../objects/curves.ts";
import { chartVariable, labelOf, type ObjectVariable, severityOf, shownValue, stateOf, type Value } from "../objects/variables.ts";
import { w as severities } from "../overview/words.ts";
import { curves, isWall } from "../shell/api.ts";
import { clock } from "../shell/clock.ts";
import { useLoad } from "../shell/hooks.ts";
import { link } from "../shell/routes.ts";
import { t, type Pair } from "../words/words.ts";
import { AQI_BANDS, arc, bandOf, onCircle, rangeFor, reached, shares, stretches, summary, type Band } from "./figures.ts";
import type { Widget } from "./record.ts";
import type { PageValues } from "./values.ts";
import { w } from "./words.ts";

interface Props {
  widget: Widget;
  values: PageValues;
}

/** A value of a widget with what is known of it. */
interface Shown {
  key: string;
  objectId: string;
  code: string;
  variable: ObjectVariable | null;
  number: number;
  name: string;
}

const DAY_MS = 86_400_000;
const HOURS_MS = 3_600_000;
const READ_MS = 60_000;
const REST_MS = 5 * 60_000; // after which a chart on a wall follows the clock again
const COLORS = 6;
const GAUGE_FROM = 0.625;
const GAUGE_TURN = 0.75;

const DRAWN: Record<string, (props: Props) => JSX.Element | null> = {
  crd: Cards,
  vlu: Figure,
  lin: Lines,
  gag: Gauge,
  pie: Pie,
  rad: Radar,
  bar: Bars,
  dzc: Lamps,
  aqi: Index,
  mxa: Summary,
  scd: States,
  ddc: Control,
};

/** A widget's contents; one of a type that is not known here says so. */
export function WidgetBody(props: Props) {
  const Body = DRAWN[props.widget.type];
  if (!Body) return <p class="dim">{t(w.unknown, { type: props.widget.type.slice(0, 40) })}</p>;
  if (!props.widget.values.length) return <p class="dim">{t(w.noValue)}</p>;
  return <Body {...props} />;
}

function shownOf({ widget, values }: Props): Shown[] {
  const objects = new Set(widget.values.map(values.objectOf));
  const codes = new Set(widget.values.map((each) => each.code));
  return widget.values.map((each) => {
    const variable = values.known(each);
    const value = variable?.value as Value | undefined;
    const number = typeof value === "number" || typeof value === "boolean" ? Number(value) : NaN;
    const objectId = values.objectOf(each);
    const own = variable ? labelOf(variable) : each.code;
    const object = objects.size > 1 ? values.nameOf(objectId) : "";
    const name = object && codes.size === 1 ? object : [object, own].filter(Boolean).join(" · ");
    return { key: `${objectId} ${each.code}`, objectId, code: each.code, variable, number, name };
  });
}

function limit(widget: Widget, name: string): number | null {
  const value = widget.attribute[name];
  return typeof value === "number" && Number.isFinite(value) ? value : null;
}

const lowOf = (widget: Widget, each?: Shown): number | null => limit(widget, "least") ?? each?.variable?.low ?? null;
const highOf = (widget: Widget, each?: Shown): number | null => limit(widget, "most") ?? each?.variable?.high ?? null;
const color = (index: number): string => `var(--s${(index % COLORS) + 1})`;

const SEVERITY_WORDS: Record<string, Pair> = { critical: severities.critical, major: severities.major, minor: severities.minor, warning: severities.warning, info: severities.info };

function severityWord(severity: string): string {
  return t(SEVERITY_WORDS[severity] ?? [severity, severity]);
}

/** Text that leads to an object's page, but on a wall, which shows nothing else. */
function ToObject({ each, isButton = false, children }: { each: Shown; isButton?: boolean; children: ComponentChildren }) {
  if (isWall()) return isButton ? null : <span class="dim">{children}</span>;
  return (
    <a class={isButton ? "button" : "dim"} href={link(["objects", each.objectId], { key: each.code })}>
      {children}
    </a>
  );
}

function ValueText({ each, isLarge = false }: { each: Shown; isLarge?: boolean }) {
  const { variable } = each;
  if (!variable) return <span class="dim">{t(w.gone)}</span>;
  const value = variable.value as Value;
  const severity = severityOf(variable, value);
  const word = severity ? ` ${severityWord(severity)}` : "";
  return (
    <span class={`${isLarge ? "figure" : "strong"} ${severity === "major" || severity === "critical" ? "is-bad" : severity ? "is-warn" : ""}`}>
      <Name text={shownValue(variable, value)} /> {stateOf(variable, value) === null && variable.unit && <small class="dim">{variable.unit}</small>}
      {word && <small>{word}</small>}
    </span>
  );
}

function Cards(props: Props) {
  return (
    <ul class="cards">
      {shownOf(props).map((each) => (
        <li key={each.key}>
          <ToObject each={each}>
            <Name text={each.name} />
          </ToObject>
          <ValueText each={each} isLarge />
          <span class="dim">
            <Age at={each.variable?.time} />
          </span>
        </li>
      ))}
    </ul>
  );
}

function Figure(props: Props) {
  return (
    <div class="centered">
      {shownOf(props).map((each) => (
        <span key={each.key}>
          <ValueText each={each} isLarge />{" "}
          <span class="dim">
            <Age at={each.variable?.time} />
          </span>
        </span>
      ))}
    </div>
  );
}

function Lines(props: Props) {
  const shown = shownOf(props);
  const keys = shown.map((each) => each.key).join("\n");
  const source = useMemo(() => {
    const all = new Map(shown.map((each) => [each.key, { objectId: each.objectId, code: each.code }]));
    return curvesOf((key) => all.get(key) ?? { objectId: "", code: key });
  }, [keys]);
  const variables = shown.flatMap((each) => (each.variable ? [{ ...chartVariable(each.variable, each.key), name: each.name }] : []));
  const hours = limit(props.widget, "hours") ?? 8;
  const first = { ...FIRST_VIEW, spanMs: Math.min(8760, Math.max(0.1, hours)) * HOURS_MS };
  const [view, keepView] = useMovedView(first);
  if (!props.values.isRead) return null;
  const height = Math.max(140, props.widget.place.height * 52 - 70);
  const keyed = { ...view, keys: variables.map((each) => each.key) };
  return <Chart title={props.widget.name} source={source} variables={variables} view={keyed} onView={keepView} height={height} isBare />;
}

/** The view of a chart as whoever looks has moved it, until it shall follow the clock again; on a wall it does so by itself. */
function useMovedView(first: ChartView): [ChartView, (view: ChartView) => void] {
  const [hidden, setHidden] = useState<string[]>([]);
  const [range, setRange] = useState<ChartView["range"]>(null);
  useEffect(() => {
    if (!range || !(isWall() || document.fullscreenElement)) return;
    const timer = setTimeout(() => setRange(null), REST_MS);
    return () => clearTimeout(timer);
  }, [range]);
  const keep = (view: ChartView): void => {
    setHidden(view.hidden);
    setRange(view.live ? null : view.range);
  };
  return [range ? { ...first, hidden, live: false, range, spanMs: range.to - range.from } : { ...first, hidden }, keep];
}

function Gauge(props: Props) {
  const each = shownOf(props)[0];
  if (!each) return null;
  const [least, most] = rangeFor([each.number], lowOf(props.widget, each), highOf(props.widget, each));
  const share = reached(each.number, least, most);
  return (
    <div class="centered">
      <svg class="gauge" viewBox="0 0 100 94" aria-hidden="true">
        <path class="track" d={arc(50, 48, 40, GAUGE_FROM, GAUGE_FROM + GAUGE_TURN)} />
        {share > 0 && <path class="reached" d={arc(50, 48, 40, GAUGE_FROM, GAUGE_FROM + GAUGE_TURN * share)} />}
        <text x="14" y="92">
          {numberText(least)}
        </text>
        <text x="86" y="92" text-anchor="end">
          {numberText(most)}
        </text>
      </svg>
      <ValueText each={each} isLarge />
    </div>
  );
}

function LegendList({ shown, extra }: { shown: Shown[]; extra?: (index: number) => string }) {
  return (
    <ul class="legend-list">
      {shown.map((each, index) => (
        <li key={each.key}>
          <i class={`swatch s${(index % COLORS) + 1}`} /> <Name text={each.name} /> <ValueText each={each} /> {extra && <span class="dim">{extra(index)}</span>}
        </li>
      ))}
    </ul>
  );
}

function Pie(props: Props) {
  const shown = shownOf(props);
  const parts = shares(shown.map((each) => each.number));
  return (
    <div class="side-by-side">
      <svg class="pie" viewBox="0 0 100 100" aria-hidden="true">
        {parts.map(([from, to], index) => to > from && <path key={index} d={arc(50, 50, 38, from, to)} stroke={color(index)} />)}
      </svg>
      <LegendList shown={shown} extra={(index) => `${(((parts[index]?.[1] ?? 0) - (parts[index]?.[0] ?? 0)) * 100).toFixed(0)} %`} />
    </div>
  );
}

function Radar(props: Props) {
  const shown = shownOf(props);
  const all = rangeFor(shown.map((each) => each.number), limit(props.widget, "least"), limit(props.widget, "most"));
  const points = shown.map((each, index) => {
    const [least, most] = each.variable?.high === null || each.variable === null ? all : rangeFor([], lowOf(props.widget, each), highOf(props.widget, each));
    return onCircle(50, 50, 42 * reached(each.number, least, most), index / shown.length);
  });
  const path = (at: [number, number][]): string => at.map(([x, y]) => `${x.toFixed(2)},${y.toFixed(2)}`).join(" ");
  return (
    <div class="side-by-side">
      <svg class="radar" viewBox="0 0 100 100" aria-hidden="true">
        {[14, 28, 42].map((radius) => (
          <polygon key={radius} class="ring" points={path(shown.map((_each, index) => onCircle(50, 50, radius, index / shown.length)))} />
        ))}
        <polygon class="area" points={path(points)} />
        {points.map(([x, y], index) => (
          <circle key={index} cx={x} cy={y} r="2.5" fill={color(index)} />
        ))}
      </svg>
      <LegendList shown={shown} />
    </div>
  );
}

function Bars(props: Props) {
  const shown = shownOf(props);
  const [least, most] = rangeFor(shown.map((each) => each.number), limit(props.widget, "least"), limit(props.widget, "most"));
  return (
    <ul class="bar-list">
      {shown.map((each, index) => (
        <li key={each.key}>
          <Name text={each.name} />
          <svg viewBox="0 0 100 10" preserveAspectRatio="none" aria-hidden="true">
            <rect class="track" width="100" height="10" />
            <rect width={reached(each.number, least, most) * 100} height="10" fill={color(index)} />
          </svg>
          <ValueText each={each} />
        </li>
      ))}
    </ul>
  );
}

function Lamps(props: Props) {
  return (
    <ul class="lamps">
      {shownOf(props).map((each) => {
        const isOn = each.number !== 0 && !Number.isNaN(each.number);
        return (
          <li key={each.key}>
            <i class={`dot ${isOn ? "" : "off"}`} /> <Name text={each.name} /> <ValueText each={each} />
          </li>
        );
      })}
    </ul>
  );
}

const BAND_WORDS: Pair[] = [w.good, w.moderate, w.sensitive, w.unhealthy, w.veryUnhealthy, w.hazardous];

/** Bands of the widget (`attribute.bands`, upper ends that rise), else those of the air quality index. */
function bandsOf(widget: Widget): readonly Band[] {
  const own = widget.attribute["bands"];
  const ends = Array.isArray(own) ? own.slice(0, 6).filter((each): each is number => typeof each === "number" && Number.isFinite(each)) : [];
  return ends.length && ends.every((each, index) => !index || each > (ends[index - 1] as number)) ? ends.map((to, meaning) => ({ to, meaning })) : AQI_BANDS;
}

function Index(props: Props) {
  const each = shownOf(props)[0];
  if (!each) return null;
  const bands = bandsOf(props.widget);
  const band = Number.isNaN(each.number) ? undefined : bandOf(each.number, bands);
  const place = bands.findIndex((one) => one === band);
  const below = bands[place - 1]?.to ?? 0;
  const at = place < 0 || !band ? 0 : ((place + reached(each.number, below, band.to)) / bands.length) * 100;
  return (
    <div class="centered">
      <ValueText each={each} isLarge />
      {band && <span>{t(BAND_WORDS[band.meaning] ?? w.hazardous)}</span>}
      <svg class="bands" viewBox="0 0 100 12" preserveAspectRatio="none" aria-hidden="true">
        {bands.map((one, index) => (
          <rect key={index} class={`band b${one.meaning}`} x={(index * 100) / bands.length} y="4" width={100 / bands.length - 0.6} height="6" />
        ))}
        {band && <rect class="pointer" x={Math.min(99, at)} y="0" width="1" height="12" />}
      </svg>
    </div>
  );
}

/** The curves of a widget's values over the last day. */
function useDay(props: Props): Map<string, Curve> {
  const shown = shownOf(props);
  const found = useLoad(
    async (abort) => {
      const end = clock.now.peek();
      const range = { start_time: new Date(end - DAY_MS).toISOString(), end_time: new Date(end).toISOString() };
      const ask = async (each: Shown): Promise<[string, Curve]> => {
        const data = await curves({ object_id: each.objectId, keys: [each.code], points: 2000, ...range }, abort);
        return [each.key, data[each.code] ?? { times: [], values: [] }];
      };
      return new Map(await Promise.all(shown.filter((each) => each.variable).map(ask)));
    },
    [shown.map((each) => `${each.key} ${each.variable !== null}`).join()],
    READ_MS,
  );
  return found.data ?? new Map<string, Curve>();
}

function Summary(props: Props) {
  const curves = useDay(props);
  const end = clock.now.peek();
  return (
    <div class="scroll">
      <table>
        <caption class="dim">{t(w.lastDay)}</caption>
        <thead>
          <tr>
            <th>
              <span class="sr">{t(w.variable)}</span>
            </th>
            <th class="num">{t(w.least)}</th>
            <th class="num">{t(w.mean)}</th>
            <th class="num">{t(w.most)}</th>
          </tr>
        </thead>
        <tbody>
          {shownOf(props).map((each) => {
            const curve = curves.get(each.key);
            const found = curve ? summary(curve.times, curve.values, end) : null;
            const cell = (value: number | undefined) => (
              <td class="num">{value === undefined ? "–" : numberText(value, each.variable?.decimals ?? (Math.abs(value) < 100 ? 2 : 0))}</td>
            );
            return (
              <tr key={each.key}>
                <td>
                  <Name text={`${each.name} ${each.variable?.unit ?? ""}`} />
                </td>
                {cell(found?.least)}
                {cell(found?.mean)}
                {cell(found?.most)}
              </tr>
            );
          })}
        </tbody>
      </table>
    </div>
  );
}

function States(props: Props) {
  const curves = useDay(props);
  const end = clock.now.peek();
  const begin = end - DAY_MS;
  return (
    <ul class="bar-list states">
      {shownOf(props).map((each) => {
        const curve = curves.get(each.key);
        const found = curve ? stretches(curve.times, curve.values, end) : [];
        const kinds = [...new Set(found.map((one) => one.value))].sort((a, b) => a - b);
        return (
          <li key={each.key}>
            <Name text={each.name} />
            <svg viewBox="0 0 1000 10" preserveAspectRatio="none" role="img" aria-label={t(w.lastDay)}>
              <rect class="track" width="1000" height="10" />
              {found.slice(-500).map((one) => (
                <rect
                  key={one.from}
                  x={((one.from - begin) / DAY_MS) * 1000}
                  width={Math.max(1, ((one.to - one.from) / DAY_MS) * 1000)}
                  height="10"
                  fill={one.value === 0 ? "var(--line)" : color(kinds.indexOf(one.value))}
                >
                  <title>{`${each.variable ? shownValue(each.variable, one.value) : one.value} · ${clock.format(one.from)}`}</title>
                </rect>
              ))}
            </svg>
            <ValueText each={each} />
          </li>
        );
      })}
    </ul>
  );
}

function Control(props: Props) {
  return (
    <ul class="lamps">
      {shownOf(props).map((each) => (
        <li key={each.key}>
          <Name text={each.name} /> <ValueText each={each} />
          <ToObject each={each} isButton>
            {t(w.command)}
          </ToObject>
        </li>
      ))}
    </ul>
  );
}
