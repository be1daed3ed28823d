/** The curves of a chart: loads what a view needs, keeps what it has while finer points come, and takes what happens. */
import { append, EMPTY, forget, type Curve } from "./curve.ts";
import { loadedBy, planLoad, type Load, type Loaded, type Range } from "./window.ts";

/** Where curves come from. */
export interface ChartSource {
  /** The curves of a range, oldest point first, thinned out to so many points that keep every extreme. */
  load: (keys: string[], load: Load, signal: AbortSignal) => Promise<Record<string, Curve>>;
  /** Tells of each value as it comes; `onGap`: some may be missing. The result ends it. */
  follow?: (keys: string[], onValue: (key: string, at: number, value: number) => void, onGap: () => void) => () => void;
}

const TAIL_MAX = 20_000; // points of a curve that are kept while it only grows

export class ChartData {
  private curves = new Map<string, Curve>();
  private loaded: Loaded | null = null;
  private wanted: Load | null = null;
  private loading: AbortController | undefined;
  private late: [key: string, at: number, value: number][] = []; // came while a load was under way
  private readonly source: ChartSource;
  private readonly onChange: (error?: unknown) => void;
  private keys: string[] = [];

  /** `onChange` hears of new points, and of loads that failed. */
  constructor(source: ChartSource, onChange: (error?: unknown) => void) {
    this.source = source;
    this.onChange = onChange;
  }

  get isLoading(): boolean {
    return this.loading !== undefined;
  }

  curve(key: string): Curve {
    return this.curves.get(key) ?? EMPTY;
  }

  /** Loads what a view of so many pixels needs and is not there. */
  async show(keys: readonly string[], view: Range, pixels: number, now: number): Promise<void> {
    if (keys.join("\n") !== this.keys.join("\n")) {
      this.keys = [...keys];
      this.loaded = this.wanted = null;
    }
    if (!keys.length) return;
    const load = planLoad(view, this.loaded, pixels, now);
    if (!load || (this.wanted && !planLoad(view, loadedBy(this.wanted), pixels, now))) return;
    await this.bring(load);
  }

  /** What was loaded may be incomplete: the next `show` loads it again. */
  forgetLoaded(): void {
    this.loaded = this.wanted = null;
  }

  /** Takes a value as it comes. */
  add(key: string, at: number, value: number): void {
    if (this.loading) this.late.push([key, at, value]);
    if (this.loaded) this.keep(key, at, value);
  }

  close(): void {
    this.loading?.abort();
  }

  private async bring(load: Load): Promise<void> {
    this.loading?.abort();
    const loading = (this.loading = new AbortController());
    this.wanted = load;
    this.late = [];
    try {
      const found = await this.source.load(this.keys, load, loading.signal);
      if (loading !== this.loading) return;
      this.curves = new Map(Object.entries(found));
      this.loaded = loadedBy(load);
      for (const each of this.late) this.keep(...each);
      this.end();
      this.onChange();
    } catch (error) {
      if (loading !== this.loading) return;
      this.end();
      if (!loading.signal.aborted) this.onChange(error);
    }
  }

  private end(): void {
    this.loading = undefined;
    this.wanted = null;
    this.late = [];
  }

  private keep(key: string, at: number, value: number): void {
    let curve = this.curves.get(key);
    if (!curve) this.curves.set(key, (curve = { times: [], values: [] }));
    if (!this.loaded || at < this.loaded.from) return;
    append(curve, at, value);
    this.loaded.to = Math.max(this.loaded.to, at);
    if (curve.times.length > TAIL_MAX) this.shorten(curve);
  }

  /** A curve that only grew loses its older half; going back loads that again. */
  private shorten(curve: Curve): void {
    const from = curve.times[TAIL_MAX / 2] as number;
    for (const each of this.curves.values()) forget(each, from);
    if (this.loaded) this.loaded.from = Math.max(this.loaded.from, from);
  }
}
