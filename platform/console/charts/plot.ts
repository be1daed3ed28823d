/** Draws curves on axes of time and values: uPlot for axes and canvas, own paths, which thin out to the pixels there are. */
import uPlot from "uplot";
import { extremes, gapMs, lead, type Curve } from "./curve.ts";
import { drawPath } from "./path.ts";
import { ticks } from "./time-axis.ts";
import { numberText, roomy, roundValues } from "./value-axis.ts";
import type { Range } from "./window.ts";

/** A curve as it is drawn: `shiftMs` later than it was; `isStepped`: a value lasts until the next. */
export interface Line {
  curve: Curve;
  color: string;
  axis: number;
  isFaint: boolean;
  isStepped: boolean;
  shiftMs: number;
  /** Up to when what it was before may be drawn: what comes later is not known. */
  until: number;
}

/** What happened, on the axis: an instant, or a time until `to`. */
export interface Mark {
  at: number;
  to: number | null;
  color: string;
  /** What it is called, where a pointer is at it. */
  name: string;
}

/** Looks and place. */
export interface PlotFrame {
  width: number;
  height: number;
  zone: string;
  language: string;
  textColor: string;
  gridColor: string;
  font: string;
}

const AXES = 4;
const AXIS_PX = 52;
const NARROW_PX = 560; // below which there is one axis of values; the legend has all of them
const TICK_PX = 64;
const VALUE_PX = 44;
const LINE_PX = 1.25;
const LEAD_PX = 2; // broad and long of a dot, and half of what is between two
const COARSE_PX = 2; // columns of a line that is thin
const MOVING_PX = 4; // and while it moves, where there are many: half of the pieces, in script and on the canvas
const MOST_BROAD = 8; // lines; more are one pixel of the screen each, which is drawn in a tenth of the time where no GPU helps

export class Plot {
  readonly uplot: uPlot;
  private lines: readonly Line[] = [];
  private marks: readonly Mark[] = [];
  private readonly gaps = new WeakMap<Curve, { count: number; gapMs: number }>();
  private view: Range = { from: 0, to: 1 };
  private readonly frame: PlotFrame;
  private width: number;
  private coarsePx = 0;
  private reaches: [number, number][] = []; // of what is drawn now, by axis

  /** As many lines are drawn later, faint where these are. */
  constructor(host: HTMLElement, frame: PlotFrame, lines: readonly Line[]) {
    this.lines = lines;
    this.frame = frame;
    this.width = frame.width;
    this.uplot = new uPlot(this.options(), this.data(), host);
  }

  /** Draws lines over a view; while it is moving as thin as can be, since each frame counts then. */
  draw(lines: readonly Line[], view: Range, marks: readonly Mark[], isMoving = false): void {
    this.lines = lines;
    const isMany = lines.length > MOST_BROAD;
    const isThin = isMoving || isMany;
    this.coarsePx = isMoving && isMany ? MOVING_PX : isThin ? COARSE_PX : 0;
    const width = isThin ? 1 / (devicePixelRatio || 1) : LINE_PX;
    for (const each of this.uplot.series) each.width = width;
    this.marks = marks;
    this.view = view;
    this.reaches = [];
    this.uplot.batch(() => {
      this.uplot.setData(this.data(), false);
      this.uplot.setScale("x", { min: view.from, max: view.to });
    });
  }

  resize(width: number, height: number): void {
    this.width = width;
    this.uplot.setSize({ width, height });
  }

  /** The instant at so many pixels from the left edge of the plot's area. */
  instantAt(left: number): number {
    return this.view.from + (left / this.area.width) * (this.view.to - this.view.from);
  }

  /** The place of the plot's area within the chart, in CSS pixels. */
  get area(): { left: number; top: number; width: number; height: number } {
    const { left, top, width, height } = this.uplot.bbox;
    const ratio = devicePixelRatio || 1;
    return { left: left / ratio, top: top / ratio, width: width / ratio, height: height / ratio };
  }

  close(): void {
    this.uplot.destroy();
  }

  private data(): uPlot.AlignedData {
    const each = this.lines.map(({ curve }) => [curve.times, curve.values]);
    return [null, ...each] as unknown as uPlot.AlignedData;
  }

  private options(): uPlot.Options {
    const { width, height } = this.frame;
    const scales: uPlot.Scales = { x: { time: false, auto: false, range: () => [this.view.from, this.view.to] } };
    for (let axis = 0; axis < AXES; axis += 1) scales[`y${axis}`] = { range: () => this.reach(axis) };
    const series = this.lines.map((line, index) => this.series(index, line.isFaint));
    return {
      mode: 2 as never,
      width,
      height,
      padding: [10, 20, 0, 4],
      legend: { show: false },
      cursor: { show: false },
      select: { show: false } as uPlot.Select,
      scales,
      axes: [this.timeAxis(), ...Array.from({ length: AXES }, (_, axis) => this.valueAxis(axis))],
      series: [{}, ...series] as uPlot.Series[],
      hooks: { drawClear: [() => this.drawMarks(), () => this.drawLeads()] },
    };
  }

  private series(index: number, isFaint: boolean): object {
    const line = (): Line | undefined => this.lines[index];
    return {
      auto: false,
      facets: [
        { scale: "x", auto: false },
        { scale: "y0", auto: false },
      ],
      stroke: () => line()?.color ?? "transparent",
      width: LINE_PX,
      dash: isFaint ? [3, 3] : undefined,
      alpha: isFaint ? 0.7 : 1,
      points: { show: false },
      paths: () => this.path(index),
    };
  }

  /** From the lowest to the highest value that an axis has in the view; asked for several times a drawing. */
  private reach(axis: number): [number, number] {
    return (this.reaches[axis] ??= this.findReach(axis));
  }

  private findReach(axis: number): [number, number] {
    let [low, high] = [Infinity, -Infinity];
    for (const { curve, axis: own, shiftMs } of this.lines) {
      const found = own === axis ? extremes(curve, this.view.from - shiftMs, this.view.to - shiftMs) : null;
      if (found) [low, high] = [Math.min(low, found[0]), Math.max(high, found[1])];
    }
    return low <= high ? roomy(low, high) : [0, 1];
  }

  private timeAxis(): uPlot.Axis {
    const found = (): ReturnType<typeof ticks> =>
      ticks(this.view.from, this.view.to, Math.max(2, this.area.width / TICK_PX), this.frame.zone, this.frame.language);
    return {
      ...this.axisLooks(),
      scale: "x",
      size: 42,
      grid: { show: false },
      splits: () => found().map((each) => each.at),
      values: () => found().map((each) => (each.context ? `${each.label}\n${each.context}` : each.label)),
    };
  }

  private valueAxis(axis: number): uPlot.Axis {
    return {
      ...this.axisLooks(),
      scale: `y${axis}`,
      side: axis % 2 ? 1 : 3,
      size: () => (this.hasAxis(axis) ? AXIS_PX : 0),
      stroke: () => this.axisColor(axis),
      grid: { show: axis === 0, stroke: this.frame.gridColor, width: 1 },
      splits: (_u, _axis, low, high) => {
        if (!this.hasAxis(axis)) return [];
        return roundValues(low, high, Math.max(3, this.area.height / VALUE_PX));
      },
      values: (_u, splits) => splits.map((value) => numberText(value)),
    };
  }

  private hasAxis(axis: number): boolean {
    const first = Math.min(...this.lines.map((each) => each.axis));
    return axis === first || (this.width >= NARROW_PX && this.lines.some((each) => each.axis === axis));
  }

  /** The colour of an axis' only line, where there are several axes. */
  private axisColor(axis: number): string {
    const colors = new Set(this.lines.filter((each) => each.axis === axis).map((each) => each.color));
    const isOne = colors.size === 1 && this.lines.some((each) => each.axis !== axis);
    return isOne ? [...colors].join("") : this.frame.textColor;
  }

  private axisLooks(): uPlot.Axis {
    return { stroke: this.frame.textColor, font: this.frame.font, ticks: { show: false }, gap: 6 };
  }

  /** Lines that look alike are one path, which the first of them has: each stroke has a cost of its own. */
  private path(index: number): uPlot.Series.Paths | null {
    const line = this.lines[index];
    const alike = this.lines.filter(({ color, isFaint }) => color === line?.color && isFaint === line.isFaint);
    if (alike[0] !== line) return null;
    const stroke = new Path2D();
    for (const each of alike) this.trace(each, stroke);
    return { stroke, fill: null, clip: null, band: null, gaps: null, flags: 0 } as unknown as uPlot.Series.Paths;
  }

  private trace(line: Line, path: Path2D): void {
    const { left, top, width, height } = this.uplot.bbox;
    const [low, high] = this.reachOf(line.axis);
    const plane = { from: this.view.from - line.shiftMs, to: this.view.to - line.shiftMs, low, high, left, top, width, height };
    const gap = line.isStepped ? Infinity : this.gapOf(line.curve);
    drawPath(line.curve, plane, { isStepped: line.isStepped, gapMs: gap, coarsePx: this.coarsePx }, path);
  }

  private gapOf(curve: Curve): number {
    const found = this.gaps.get(curve);
    if (found?.count === curve.times.length) return found.gapMs;
    const ms = gapMs(curve.times);
    this.gaps.set(curve, { count: curve.times.length, gapMs: ms });
    return ms;
  }

  private reachOf(axis: number): [number, number] {
    const scale = this.scaleOf(axis);
    return [scale.min ?? 0, scale.max ?? 1];
  }

  private scaleOf(axis: number): uPlot.Scale {
    return this.uplot.scales[`y${axis}`] as uPlot.Scale;
  }

  /** Dotted lines for what curves were before their first points. */
  private drawLeads(): void {
    const { ctx, bbox } = this.uplot;
    const ratio = devicePixelRatio || 1;
    const perMs = bbox.width / (this.view.to - this.view.from);
    ctx.save();
    ctx.lineWidth = LEAD_PX * ratio;
    ctx.setLineDash([LEAD_PX * ratio, 2 * LEAD_PX * ratio]);
    for (const { curve, color, axis, shiftMs, until } of this.lines) {
      const found = lead(curve, this.view.from - shiftMs, Math.min(this.view.to - shiftMs, until));
      if (!found) continue;
      const [low, high] = this.reachOf(axis);
      const y = Math.round(bbox.top + bbox.height * (1 - (found.value - low) / (high - low)));
      const x = (at: number): number => bbox.left + (at + shiftMs - this.view.from) * perMs;
      ctx.strokeStyle = color;
      ctx.beginPath();
      ctx.moveTo(x(found.from), y);
      ctx.lineTo(x(found.to), y);
      ctx.stroke();
    }
    ctx.restore();
  }

  /** Bars above the plot's area for what lasted, and lines through it for what happened. */
  private drawMarks(): void {
    const { ctx, bbox } = this.uplot;
    const ratio = devicePixelRatio || 1;
    const perMs = bbox.width / (this.view.to - this.view.from);
    const place = (at: number): number => bbox.left + Math.max(0, Math.min(bbox.width, (at - this.view.from) * perMs));
    ctx.save();
    for (const { at, to, color } of this.marks) {
      if (at > this.view.to || (to ?? at) < this.view.from) continue;
      ctx.fillStyle = color;
      if (to !== null) ctx.fillRect(place(at), bbox.top - 5 * ratio, Math.max(2 * ratio, place(to) - place(at)), 3 * ratio);
      else {
        ctx.globalAlpha = 0.6;
        ctx.fillRect(place(at), bbox.top, ratio, bbox.height);
        ctx.globalAlpha = 1;
        ctx.fillRect(place(at) - 2 * ratio, bbox.top + bbox.height - 5 * ratio, 5 * ratio, 5 * ratio);
      }
    }
    ctx.restore();
  }
}
