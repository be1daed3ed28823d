/** Which page is shown: all of it stands in the fragment, so that a link keeps the view and a proxy's path does not matter. */
import { signal } from "@preact/signals";

export interface Route {
  page: string;
  /** What follows the page's name: `terminals/demo-1` has `["demo-1"]`. */
  path: string[];
  query: URLSearchParams;
}

export const HOME = "overview";

/** Reads a fragment. */
export function readRoute(fragment: string): Route {
  const [path = "", query = ""] = fragment.replace(/^#?\/?/, "").split("?", 2);
  const [page = "", ...rest] = path.split("/").filter(Boolean).map(decode);
  return { page: page || HOME, path: rest, query: new URLSearchParams(query) };
}

function decode(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

/** The fragment of a page. */
export function link(path: readonly string[], query: Readonly<Record<string, string | undefined>> = {}): string {
  const search = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) if (value) search.set(name, value);
  const text = search.toString();
  return `#/${path.map(encodeURIComponent).join("/")}${text ? `?${text}` : ""}`;
}

export const route = signal<Route>(readRoute(typeof location === "undefined" ? "" : location.hash));

/** Follows the address bar. */
export function followRoutes(): void {
  addEventListener("hashchange", () => (route.value = readRoute(location.hash)));
}

/** Changes the view without a step back for each letter typed. */
export function replaceQuery(changes: Readonly<Record<string, string | undefined>>): void {
  const { page, path, query } = route.value;
  const all: Record<string, string | undefined> = { ...Object.fromEntries(query), ...changes };
  history.replaceState(null, "", link([page, ...path], all));
  route.value = readRoute(location.hash);
}

/** Goes to a page. */
export function go(to: string): void {
  location.hash = to;
}
