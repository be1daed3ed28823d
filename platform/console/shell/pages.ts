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
  /** Who sees it at all; `super`: who sees the machine. */
  role?: Role | "super";
  /** Stands in the bar of a phone. */
  first?: boolean;
}

export const titles = words({
  overview: ["Overview", "概览"],
  events: ["Events", "事件"],
  terminals: ["Terminals", "终端"],
  objects: ["Objects", "对象"],
  commands: ["Commands", "命令"],
  dashboards: ["Dashboards", "仪表盘"],
  mapping: ["Mapping", "映射"],
  statistics: ["Statistics", "统计"],
  rules: ["Rules", "规则"],
  campaigns: ["Campaigns", "升级活动"],
  customers: ["Customers", "客户"],
  access: ["Access", "访问管理"],
  audit: ["Audit", "审计"],
  broker: ["Broker", "消息代理"],
  machine: ["Machine", "本机"],
});

export const PAGES: readonly PageEntry[] = [
  { id: "overview", title: titles.overview, load: () => import("../overview/page.tsx"), first: true },
  { id: "events", title: titles.events, load: () => import("../events/page.tsx"), first: true },
  { id: "terminals", title: titles.terminals, load: () => import("../terminals/page.tsx"), first: true },
  { id: "objects", title: titles.objects, load: () => import("../objects/page.tsx"), first: true },
  { id: "commands", title: titles.commands, load: () => import("../commands/page.tsx") },
  { id: "dashboards", title: titles.dashboards, load: () => import("../dashboards/page.tsx") },
  { id: "mapping", title: titles.mapping, load: () => import("../mapping/page.tsx"), group: true },
  { id: "statistics", title: titles.statistics, load: () => import("../statistics/page.tsx") },
  { id: "rules", title: titles.rules, load: () => import("../rules/page.tsx"), group: true },
  { id: "campaigns", title: titles.campaigns, load: () => import("../campaigns/page.tsx") },
  { id: "broker", title: titles.broker, load: () => import("../broker/page.tsx") },
  { id: "customers", title: titles.customers, load: () => import("../customers/page.tsx") },
  { id: "access", title: titles.access, load: () => import("../access/page.tsx") },
  { id: "audit", title: titles.audit, load: () => import("../audit/page.tsx"), role: "admin" },
  { id: "machine", title: titles.machine, load: () => import("../machine/page.tsx"), role: "super" },
];
