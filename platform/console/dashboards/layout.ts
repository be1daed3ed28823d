/** Places of widgets on a grid: inside of it, and none over another. */
import type { DashboardPage, Place, Widget } from "./record.ts";

export function overlap(a: Place, b: Place): boolean {
  return a.left < b.left + b.width && b.left < a.left + a.width && a.top < b.top + b.height && b.top < a.top + a.height;
}

/** A place that lies within the columns, with at least a cell. */
export function inside(place: Place, columns: number): Place {
  const width = Math.min(columns, Math.max(1, Math.round(place.width)));
  const height = Math.max(1, Math.round(place.height));
  const left = Math.min(columns - width, Math.max(0, Math.round(place.left)));
  return { left, top: Math.max(0, Math.round(place.top)), width, height };
}

/** Whether a widget may be there. */
export function isFree(widgets: readonly Widget[], index: number, place: Place): boolean {
  return widgets.every((each) => each.index === index || !overlap(each.place, place));
}

/** The first free place of a size, from the top left; below all others at the last. */
export function freePlace(page: DashboardPage, width: number, height: number): Place {
  const wide = Math.min(width, page.columns);
  const bottom = Math.max(0, ...page.widgets.map((each) => each.place.top + each.place.height));
  for (let top = 0; top < bottom; top += 1) {
    for (let left = 0; left + wide <= page.columns; left += 1) {
      const place = { left, top, width: wide, height };
      if (isFree(page.widgets, -1, place)) return place;
    }
  }
  return { left: 0, top: bottom, width: wide, height };
}

/** How many rows a page needs. */
export function rowsOf(page: DashboardPage): number {
  return Math.max(page.rows, ...page.widgets.map((each) => each.place.top + each.place.height));
}

/** Widgets as they are read: from the top, then from the left. */
export function inReadingOrder(widgets: readonly Widget[]): Widget[] {
  return [...widgets].sort((a, b) => a.place.top - b.place.top || a.place.left - b.place.left);
}
