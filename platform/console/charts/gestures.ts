/** Dragging, pinching, wheel and keys on a plot: what a person does to its view. */
import { cursor } from "./cursor.ts";
import type { Plot } from "./plot.ts";
import { pan, zoom, type Range } from "./window.ts";

/** What gestures act on. */
export interface Target {
  plot: () => Plot | null;
  view: () => Range;
  /** The view changes; `isDone`: the gesture is over. */
  onView: (view: Range, isDone: boolean) => void;
  /** A range is being chosen, in pixels of the plot's area; null: no more. */
  onChoose: (range: [number, number] | null) => void;
}

const KEY_SHARE = 0.1;
const KEY_FACTOR = 0.7;
const CHOSEN_PX = 8;
const WHEEL_DONE_MS = 200;

/** Listens on an element that has the plot's area as a part; the result stops it. */
export function listen(element: HTMLElement, target: Target): () => void {
  const stop = new AbortController();
  const options = { signal: stop.signal };
  const pointers = new Pointers(element, target);
  element.addEventListener("pointerdown", (event) => pointers.onDown(event), options);
  element.addEventListener("pointermove", (event) => pointers.onMove(event), options);
  for (const name of ["pointerup", "pointercancel"] as const) element.addEventListener(name, (event) => pointers.onUp(event), options);
  element.addEventListener("pointerleave", () => (cursor.value = null), options);
  element.addEventListener("wheel", wheel(element, target), { signal: stop.signal, passive: false });
  element.addEventListener("keydown", (event) => onKey(event, target), options);
  return () => stop.abort();
}

class Pointers {
  private readonly places = new Map<number, number>(); // x of each pointer that is down
  private chosenFrom: number | null = null;
  private readonly element: HTMLElement;
  private readonly target: Target;

  constructor(element: HTMLElement, target: Target) {
    this.element = element;
    this.target = target;
  }

  onDown(event: PointerEvent): void {
    if (event.button !== 0 || this.places.size > 1) return;
    this.places.set(event.pointerId, this.left(event));
    this.element.setPointerCapture(event.pointerId);
    if (event.shiftKey) this.chosenFrom = this.left(event);
  }

  onMove(event: PointerEvent): void {
    const plot = this.target.plot();
    if (!plot) return;
    const left = this.left(event);
    const before = this.places.get(event.pointerId);
    // what is dragged keeps its instant under the pointer: there is nothing new to read
    if (before === undefined || this.chosenFrom !== null) cursor.value = left >= 0 && left <= plot.area.width ? plot.instantAt(left) : null;
    if (before === undefined) return;
    if (this.chosenFrom !== null) {
      this.target.onChoose([Math.min(this.chosenFrom, left), Math.max(this.chosenFrom, left)]);
      return;
    }
    const view = this.target.view();
    if (this.places.size === 1) {
      this.target.onView(pan(view, ((before - left) / plot.area.width) * (view.to - view.from)), false);
    } else this.pinch(event.pointerId, before, left, plot);
    this.places.set(event.pointerId, left);
  }

  onUp(event: PointerEvent): void {
    if (!this.places.delete(event.pointerId)) return;
    const plot = this.target.plot();
    const left = this.left(event);
    if (this.chosenFrom !== null && plot) {
      const [from, to] = [Math.min(this.chosenFrom, left), Math.max(this.chosenFrom, left)];
      this.chosenFrom = null;
      this.target.onChoose(null);
      if (to - from >= CHOSEN_PX) this.target.onView({ from: plot.instantAt(from), to: plot.instantAt(to) }, true);
    } else if (!this.places.size) this.target.onView(this.target.view(), true);
  }

  private pinch(pointer: number, before: number, left: number, plot: Plot): void {
    const other = [...this.places].find(([id]) => id !== pointer)?.[1] ?? 0;
    const factor = Math.max(20, Math.abs(before - other)) / Math.max(20, Math.abs(left - other));
    this.target.onView(zoom(this.target.view(), plot.instantAt(other), factor), false);
  }

  private left(event: PointerEvent): number {
    return event.clientX - this.element.getBoundingClientRect().left - (this.target.plot()?.area.left ?? 0);
  }
}

function wheel(element: HTMLElement, target: Target): (event: WheelEvent) => void {
  let timer: ReturnType<typeof setTimeout>;
  return (event) => {
    const plot = target.plot();
    if (!plot || !(event.ctrlKey || event.metaKey)) return;
    event.preventDefault();
    const left = event.clientX - element.getBoundingClientRect().left - plot.area.left;
    target.onView(zoom(target.view(), plot.instantAt(left), Math.exp(Math.max(-100, Math.min(100, event.deltaY)) / 300)), false);
    clearTimeout(timer);
    timer = setTimeout(() => target.onView(target.view(), true), WHEEL_DONE_MS);
  };
}

function onKey(event: KeyboardEvent, target: Target): void {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  const view = target.view();
  const span = view.to - view.from;
  const middle = view.from + span / 2;
  const found = {
    ArrowLeft: () => pan(view, -span * KEY_SHARE),
    ArrowRight: () => pan(view, span * KEY_SHARE),
    "+": () => zoom(view, middle, KEY_FACTOR),
    "=": () => zoom(view, middle, KEY_FACTOR),
    "-": () => zoom(view, middle, 1 / KEY_FACTOR),
  }[event.key];
  if (!found) return;
  event.preventDefault();
  target.onView(found(), true);
}
