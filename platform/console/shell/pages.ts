/** All pages, in the order of the menu. A page is a folder of its name, and is loaded when it is first opened. */
import type { ComponentType } from "preact";
import { type Pair, words } from "../words/words.ts";
import type { Role } from "./api.ts";

export interface PageEntry {
  /** The folder, and the word in the address. */
  id: string;
  title: Pair;
  load: () => Promise<{ Page: ComponentType }>;
  /** Begins a new group of the menu. */
  group?: boolean;
  /** Who sees it at all. */
  role?: Role;
  /** Stands in the bar of a phone. */
  first?: boolean;
}

export const titles = words({
  overview: ["Overview", "概览"],
  events: ["Events", "事件"],
  terminals: ["Terminals", "终端"],
  objects: ["Objects", "对象"],
  dashboards: ["Dashboards", "仪表盘"],
  mapping: ["Mapping", "映射"],
});

export const PAGES: readonly PageEntry[] = [
  { id: "overview", title: titles.overview, load: () => import("../overview/page.tsx"), first: true },
  { id: "events", title: titles.events, load: () => import("../events/page.tsx"), first: true },
  { id: "terminals", title: titles.terminals, load: () => import("../terminals/page.tsx"), first: true },
  { id: "objects", title: titles.objects, load: () => import("../objects/page.tsx"), first: true },
  { id: "dashboards", title: titles.dashboards, load: () => import("../dashboards/page.tsx") },
  { id: "mapping", title: titles.mapping, load: () => import("../mapping/page.tsx"), group: true },
];
