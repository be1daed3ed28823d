/** Which part of the past is on the screen, and which has to be loaded for it. */

/** A range of instants, both ends inclusive; milliseconds since 1970, UTC. */
export interface Range {
  from: number;
  to: number;
}

/** What was loaded: its range and about how far its points are apart. */
export interface Loaded extends Range {
  stepMs: number;
}

/** What to ask for: `points` for each curve. */
export interface Load extends Range {
  points: number;
}

export const SPAN_MIN = 1000;
export const SPAN_MAX = 50 * 366 * 86_400_000;
const POINTS_MAX = 20_000;
const POINTS_A_PIXEL = 2;
const COARSE = 2.5; // by which what was loaded may be coarser than wanted before it is loaded anew

/**
 * What has to be loaded so that a view of so many pixels can be drawn; null: nothing. It is three times as wide as the
 * view, so that panning finds its points there.
 */
export function planLoad(view: Range, loaded: Loaded | null, pixels: number, now: number): Load | null {
  const span = view.to - view.from;
  const wantedMs = span / (pixels * POINTS_A_PIXEL);
  if (loaded && covers(loaded, view, now) && loaded.stepMs <= wantedMs * COARSE) return null;
  const from = Math.floor(view.from - span);
  const to = Math.ceil(view.to + span);
  return { from, to, points: Math.max(4, Math.min(POINTS_MAX, Math.ceil((to - from) / wantedMs))) };
}

/** Whether all of a view was loaded; what is still to come need not be. */
function covers(loaded: Loaded, view: Range, now: number): boolean {
  return loaded.from <= view.from && loaded.to >= Math.min(view.to, now);
}

/** What a load of so many points brings. */
export function loadedBy(load: Load): Loaded {
  return { from: load.from, to: load.to, stepMs: (load.to - load.from) / load.points };
}

/** The view around an instant, `factor` times as wide. */
export function zoom(view: Range, at: number, factor: number): Range {
  const span = view.to - view.from;
  const wide = Math.min(SPAN_MAX, Math.max(SPAN_MIN, span * factor));
  const share = (at - view.from) / span;
  const from = at - share * wide;
  return { from, to: from + wide };
}

/** The view, so many milliseconds later. */
export function pan(view: Range, ms: number): Range {
  return { from: view.from + ms, to: view.to + ms };
}
