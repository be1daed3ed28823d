/** A chart with its tools: ranges, zoom and pan, live tail, comparison, values as a table, files. */
import { useEffect, useRef, useState } from "preact/hooks";
import { Problem } from "../parts/basics.tsx";
import { isReachable } from "../shell/api.ts";
import { clock } from "../shell/clock.ts";
import { language, t } from "../words/words.ts";
import { cursor } from "./cursor.ts";
import { EMPTY, lead, valueAt, type Curve } from "./curve.ts";
import { ChartData, type ChartSource } from "./data.ts";
import { keepFile, picture } from "./export.ts";
import { listen } from "./gestures.ts";
import { HOUR_MS, WEEK_MS, type ChartView } from "./link.ts";
import { Plot, type Line, type Mark } from "./plot.ts";
import { axesOf, numberText, type Variable } from "./value-axis.ts";
import { keepValues, Values } from "./value-table.tsx";
import { pan, zoom, type Range } from "./window.ts";
import { w } from "./words.ts";

/** A variable of a chart; `stateName`: the word for a value, where values are states. */
export interface ChartVariable extends Variable {
  stateName?: (value: number) => string | null;
}

export interface ChartProps {
  title: string;
  source: ChartSource;
  variables: ChartVariable[];
  view: ChartView;
  onView: (view: ChartView) => void;
  marks?: Mark[];
  /** Pixels; a wall gives it what it has. */
  height?: number;
  /** Without tools, as on dashboards. */
  isBare?: boolean;
}

const SPANS: [ms: number, isDays: boolean][] = [
  [HOUR_MS, false],
  [8 * HOUR_MS, false],
  [24 * HOUR_MS, true],
  [WEEK_MS, true],
  [30 * 24 * HOUR_MS, true],
  [365 * 24 * HOUR_MS, true],
];
const COLORS = 6;
const NO_LINE: Line = { curve: EMPTY, color: "transparent", axis: 0, isFaint: false, isStepped: false, shiftMs: 0, until: 0 }; // axes without curves
const HEIGHT = 300;
const NEAR_PX = 5;
const MARKS_NAMED = 3;

export function Chart(props: ChartProps) {
  const { variables, view, isBare = false } = props;
  const host = useRef<HTMLDivElement>(null);
  const [turn, redraw] = useState(0);
  const [error, setError] = useState<unknown>(null);
  const model = useRef<Model | null>(null);
  useEffect(() => {
    const made = new Model(host.current as HTMLDivElement, props, () => redraw((count) => count + 1), setError);
    model.current = made;
    return () => made.close();
  }, [props.source]);
  useEffect(() => model.current?.show(props));
  const now = model.current;
  return (
    <div class="chart-box">
      {!isBare && <Tools {...props} model={now} />}
      <Legend {...props} model={now} turn={turn} />
      <div ref={host} class="chart" style={{ height: `${props.height ?? HEIGHT}px` }} tabIndex={0} role="group" aria-label={props.title} title={isBare ? undefined : t(w.keys)} />
      {error !== null && <Problem error={error} retry={() => now?.again()} />}
      {!variables.length && <p class="dim">{t(w.noKeys)}</p>}
      {view.table && now && <Values variables={variables} view={view} model={now} turn={turn} />}
    </div>
  );
}

/** What is on the canvas; outlives renderings. */
class Model {
  shown: Range;
  private props: ChartProps;
  private plot: Plot | null = null;
  private plotKey = "";
  private frame = 0;
  private readonly data: ChartData;
  private readonly before: ChartData;
  private readonly stops: (() => void)[] = [];
  private followed = "";
  private unfollow: (() => void) | undefined;
  private isMoving = false;
  private hasFailed = false;
  private hasNews = false; // values that the legend does not say yet
  private readonly line = document.createElement("div");
  private readonly chosen = document.createElement("div");
  private readonly host: HTMLElement;
  private readonly redraw: () => void;

  constructor(host: HTMLElement, props: ChartProps, redraw: () => void, onError: (error: unknown) => void) {
    this.host = host;
    this.props = props;
    this.redraw = redraw;
    this.shown = rangeOf(props.view);
    const onChange = (error?: unknown): void => {
      this.hasFailed = error !== undefined;
      onError(error ?? null);
      this.schedule();
      this.redraw();
    };
    this.data = new ChartData(props.source, onChange);
    this.before = new ChartData(props.source, onChange);
    this.line.className = "chart-cursor";
    this.chosen.className = "chart-chosen";
    const target = {
      plot: () => this.plot,
      view: () => this.shown,
      onView: (view: Range, isDone: boolean) => this.onView(view, isDone),
      onChoose: (range: [number, number] | null) => this.onChoose(range),
    };
    this.stops.push(listen(host, target), cursor.subscribe(() => this.point()), clock.now.subscribe(() => this.tick()));
    const resized = new ResizeObserver(() => this.onResize());
    resized.observe(host);
    const themed = new MutationObserver(() => this.remake());
    themed.observe(document.documentElement, { attributes: true, attributeFilter: ["data-theme", "lang"] });
    const back = isReachable.subscribe((isBack) => isBack && this.hasFailed && this.again());
    this.stops.push(() => resized.disconnect(), () => themed.disconnect(), back);
  }

  /** Takes over what is wanted; what it has itself asked to be said again is drawn already. */
  show(props: ChartProps): void {
    if (props === this.props && this.plot) return;
    this.props = props;
    if (!this.isMoving) this.shown = rangeOf(props.view);
    this.follow();
    this.load();
    this.schedule();
  }

  /** Tries a load again that failed. */
  again(): void {
    this.data.forgetLoaded();
    this.before.forgetLoaded();
    this.load();
  }

  curve(key: string): Curve {
    return this.data.curve(key);
  }

  /** The curve of a week before, where it stands in the view that is compared with it. */
  curveBefore(key: string): Curve {
    const { times, values, before } = this.before.curve(key);
    const held = before && { before: { time: before.time + WEEK_MS, value: before.value } };
    return { times: times.map((at) => at + WEEK_MS), values, ...held };
  }

  /** The value of a variable at an instant, or the newest one of the view. */
  valueAt(key: string, at: number | null): number | null {
    const newest = this.props.view.live ? Infinity : this.shown.to;
    return valueAt(this.data.curve(key), at ?? newest);
  }

  /** Whether what a curve was before its first point is drawn. */
  get hasLead(): boolean {
    const { hidden } = this.props.view;
    const to = Math.min(this.shown.to, clock.now.peek());
    return this.keys.some((key) => !hidden.includes(key) && lead(this.data.curve(key), this.shown.from, to) !== null);
  }

  /** The value a week before. */
  valueBefore(key: string, at: number | null): number | null {
    return valueAt(this.before.curve(key), (at ?? this.shown.to) - WEEK_MS);
  }

  /** What happened so near to an instant that a pointer there means it. */
  marksAt(at: number): Mark[] {
    const near = ((this.shown.to - this.shown.from) / Math.max(1, this.host.clientWidth)) * NEAR_PX;
    return (this.props.marks ?? []).filter((each) => at >= each.at - near && at <= (each.to ?? each.at) + near);
  }

  get canvas(): HTMLCanvasElement | null {
    return this.plot?.uplot.ctx.canvas ?? null;
  }

  close(): void {
    cancelAnimationFrame(this.frame);
    for (const stop of this.stops) stop();
    this.unfollow?.();
    this.data.close();
    this.before.close();
    this.plot?.close();
  }

  private get keys(): string[] {
    return this.props.variables.map((each) => each.key);
  }

  private follow(): void {
    const wanted = this.props.view.live ? this.keys.join("\n") : "";
    if (wanted === this.followed) return;
    this.followed = wanted;
    this.unfollow?.();
    this.unfollow = undefined;
    if (!wanted) return;
    const onValue = (key: string, at: number, value: number): void => {
      this.data.add(key, at, value);
      this.hasNews = true;
      this.schedule();
    };
    this.unfollow = this.props.source.follow?.(this.keys, onValue, () => this.again());
  }

  private load(): void {
    const pixels = Math.max(100, this.host.clientWidth);
    const now = clock.now.peek();
    void this.data.show(this.keys, this.shown, pixels, now);
    if (this.props.view.compare) void this.before.show(this.keys, pan(this.shown, -WEEK_MS), pixels, now);
  }

  private tick(): void {
    if (!this.props.view.live || this.isMoving || document.hidden) return;
    if (this.hasNews) this.redraw();
    this.hasNews = false;
    const moved = rangeOf(this.props.view);
    const pixel = (moved.to - moved.from) / Math.max(100, this.host.clientWidth);
    if (Math.abs(moved.to - this.shown.to) < pixel / 2) return;
    this.shown = moved;
    this.load();
    this.schedule();
    this.redraw();
  }

  private onView(view: Range, isDone: boolean): void {
    const changed = view.from !== this.shown.from || view.to !== this.shown.to || this.isMoving;
    this.shown = view;
    this.isMoving = changed && !isDone;
    this.load();
    this.schedule();
    if (changed && isDone) this.props.onView({ ...this.props.view, live: false, range: view, spanMs: view.to - view.from });
  }

  private onChoose(range: [number, number] | null): void {
    const area = this.plot?.area;
    this.chosen.hidden = !range || !area;
    if (!range || !area) return;
    const { style } = this.chosen;
    style.left = `${area.left + range[0]}px`;
    style.top = `${area.top}px`;
    style.width = `${range[1] - range[0]}px`;
    style.height = `${area.height}px`;
  }

  private onResize(): void {
    this.plot?.resize(this.host.clientWidth, this.host.clientHeight);
    this.load();
    this.schedule();
  }

  private remake(): void {
    this.plotKey = "";
    this.schedule();
    this.redraw();
  }

  /** Draws before the next frame, once however often it is asked. */
  private schedule(): void {
    if (!this.frame) this.frame = requestAnimationFrame(() => this.draw());
  }

  private draw(): void {
    this.frame = 0;
    if (!this.host.clientWidth) return;
    const lines = this.lines();
    const key = `${lines.map((each) => Number(each.isFaint)).join("")} ${language.peek()}`;
    if (key !== this.plotKey || !this.plot) this.make(lines, key);
    this.plot?.draw(lines, this.shown, this.props.marks ?? [], this.isMoving);
    this.point();
  }

  private make(lines: Line[], key: string): void {
    this.plot?.close();
    const css = getComputedStyle(document.documentElement);
    const frame = {
      width: this.host.clientWidth,
      height: this.host.clientHeight,
      zone: clock.zone.peek(),
      language: language.peek(),
      textColor: css.getPropertyValue("--dim").trim(),
      gridColor: css.getPropertyValue("--line").trim(),
      font: `12px ${css.getPropertyValue("--font").trim()}`,
    };
    this.plot = new Plot(this.host, frame, lines);
    this.plotKey = key;
    this.line.hidden = this.chosen.hidden = true;
    this.host.append(this.line, this.chosen);
  }

  private lines(): Line[] {
    const { variables, view } = this.props;
    const axes = axesOf(variables);
    const colors = lineColors();
    const shown = variables.map((each, index) => ({ each, index })).filter(({ each }) => !view.hidden.includes(each.key));
    const line = (data: ChartData, index: number, each: ChartVariable, shiftMs: number): Line => ({
      curve: data.curve(each.key),
      color: colors[index % COLORS] ?? "",
      axis: axes[index] ?? 0,
      isFaint: shiftMs > 0,
      isStepped: each.stateName !== undefined,
      shiftMs,
      until: clock.now.peek(),
    });
    const lines = shown.map(({ each, index }) => line(this.data, index, each, 0));
    if (!lines.length) return [NO_LINE];
    if (!view.compare) return lines;
    return [...lines, ...shown.map(({ each, index }) => line(this.before, index, each, WEEK_MS))];
  }

  private point(): void {
    const at = cursor.peek();
    const plot = this.plot;
    this.line.hidden = at === null || !plot || at < this.shown.from || at > this.shown.to;
    if (this.line.hidden || at === null || !plot) return;
    const { left, top, width, height } = plot.area;
    const share = (at - this.shown.from) / (this.shown.to - this.shown.from);
    this.line.style.transform = `translate(${left + share * width}px, ${top}px)`;
    this.line.style.height = `${height}px`;
  }
}

function rangeOf(view: ChartView): Range {
  if (!view.live && view.range) return view.range;
  const now = clock.now.peek();
  return { from: now - view.spanMs, to: now };
}

function lineColors(): string[] {
  const css = getComputedStyle(document.documentElement);
  return Array.from({ length: COLORS }, (_, index) => css.getPropertyValue(`--s${index + 1}`).trim());
}

/** What it was a week before. */
function Before({ variable, value }: { variable: ChartVariable; value: number | null }) {
  if (value === null) return null;
  return (
    <span class="dim" title={t(w.weekHint)}>
      {t(w.weekValue, { value: valueText(variable, value) })}
    </span>
  );
}

/** What the pointer is at, of what happened. */
function Marks({ marks }: { marks: readonly Mark[] }) {
  return (
    <span class="line">
      {marks.slice(0, MARKS_NAMED).map((each) => (
        <span key={`${each.at}${each.name}`} class="line">
          <i class="swatch" style={{ background: each.color }} />
          <bdi>{each.name.slice(0, 80)}</bdi>
        </span>
      ))}
      {marks.length > MARKS_NAMED && <span class="dim">{`+${marks.length - MARKS_NAMED}`}</span>}
    </span>
  );
}

/** A value as it is read: its state's name, or the number with its decimals and unit. */
export function valueText(variable: ChartVariable, value: number | null): string {
  if (value === null) return "–";
  const state = variable.stateName?.(value);
  if (state) return state;
  return `${numberText(value, variable.decimals)}${variable.unit ? ` ${variable.unit}` : ""}`;
}

type PartProps = ChartProps & { model: Model | null };

function Tools({ view, onView, model, title, variables }: PartProps) {
  const move = (to: Range): void => onView({ ...view, live: false, range: to, spanMs: to.to - to.from });
  const shown = (): Range => model?.shown ?? rangeOf(view);
  const span = (): number => shown().to - shown().from;
  const middle = (): number => shown().from + span() / 2;
  return (
    <div class="tools chart-tools" role="toolbar" aria-label={t(w.range)}>
      {SPANS.map(([ms, isDays]) => (
        <button
          key={ms}
          class="small"
          aria-pressed={view.spanMs === ms}
          onClick={() => onView({ ...view, spanMs: ms, live: true, range: null })}
        >
          {isDays ? t(w.days, { n: ms / 24 / HOUR_MS }) : t(w.hours, { n: ms / HOUR_MS })}
        </button>
      ))}
      <Small label={t(w.earlier)} text="◀" onClick={() => move(pan(shown(), -span() / 2))} />
      <Small label={t(w.later)} text="▶" onClick={() => move(pan(shown(), span() / 2))} />
      <Small label={t(w.closer)} text="+" onClick={() => move(zoom(shown(), middle(), 0.5))} />
      <Small label={t(w.wider)} text="−" onClick={() => move(zoom(shown(), middle(), 2))} />
      <button class="small" aria-pressed={view.live} title={t(w.liveHint)} onClick={() => onView({ ...view, live: true, range: null })}>
        {t(w.live)}
      </button>
      <button class="small" aria-pressed={view.compare} title={t(w.weekHint)} onClick={() => onView({ ...view, compare: !view.compare })}>
        {t(w.week)}
      </button>
      <button class="small" aria-pressed={view.table} onClick={() => onView({ ...view, table: !view.table })}>
        {t(w.table)}
      </button>
      <button class="small" onClick={() => void keepPicture(title, variables, model)}>
        {t(w.png)}
      </button>
      <button class="small" onClick={() => keepValues(title, variables, model, view.compare)}>
        {t(w.csv)}
      </button>
    </div>
  );
}

function Small(props: { label: string; text: string; onClick: () => void }) {
  return (
    <button class="small" aria-label={props.label} title={props.label} onClick={props.onClick}>
      {props.text}
    </button>
  );
}

async function keepPicture(title: string, variables: ChartVariable[], model: Model | null): Promise<void> {
  if (!model?.canvas) return;
  const css = getComputedStyle(document.documentElement);
  const head = `${title} · ${clock.format(model.shown.from)} – ${clock.format(model.shown.to)} ${clock.offset.value}`;
  const colors = lineColors();
  const legend = variables.map((each, index) => ({ color: colors[index % COLORS] ?? "", text: each.name || each.key }));
  const read = (name: string): string => css.getPropertyValue(name).trim();
  keepFile(await picture(model.canvas, head, legend, read("--card"), read("--text")), `${title}.png`);
}

/** `turn` rises with what the model has to say, which no other property tells. */
function Legend({ variables, view, onView, model, isBare }: PartProps & { turn: number }) {
  const at = cursor.value;
  const range = model?.shown ?? rangeOf(view);
  const isWithin = at !== null && at >= range.from && at <= range.to;
  const toggle = (key: string): void => {
    const hidden = view.hidden.includes(key) ? view.hidden.filter((each) => each !== key) : [...view.hidden, key];
    onView({ ...view, hidden });
  };
  return (
    <div class="legend">
      {variables.map((each, index) => (
        <button
          key={each.key}
          class="plain small"
          aria-pressed={!view.hidden.includes(each.key)}
          title={t(w.show, { name: each.name || each.key })}
          onClick={() => toggle(each.key)}
        >
          <i class={`swatch s${(index % COLORS) + 1}`} />
          <bdi>{each.name || each.key}</bdi> <b>{valueText(each, model?.valueAt(each.key, isWithin ? at : null) ?? null)}</b>{" "}
          {view.compare && <Before variable={each} value={model?.valueBefore(each.key, isWithin ? at : null) ?? null} />}
        </button>
      ))}
      {model?.hasLead && <span class="dim">{t(w.lead)}</span>}
      {isWithin && <Marks marks={model?.marksAt(at) ?? []} />}
      {isBare && !view.live && (
        <button class="small legend-live" title={t(w.liveHint)} onClick={() => onView({ ...view, live: true, range: null })}>
          {t(w.live)}
        </button>
      )}
      {!isBare && (
        <span class="dim legend-time">
          {isWithin ? clock.format(at) : `${clock.format(range.from)} – ${clock.format(range.to)}`} {clock.offset.value}
        </span>
      )}
    </div>
  );
}
