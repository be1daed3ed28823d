/** Where what the platform's search finds is looked at, and what it is called. */
import type { Result } from "terrazzo-client";
import { type Pair, words } from "../words/words.ts";
import { link } from "./routes.ts";

export type Hit = Result<"search">[number];

export const kinds = words({
  terminal: ["terminal", "终端"],
  event: ["event", "事件"],
  object: ["object", "对象"],
  customer: ["customer", "客户"],
  group: ["group", "分组"],
  terminal_config: ["configuration", "配置"],
  mapping: ["mapping", "映射"],
  control: ["control table", "控制表"],
  retainer: ["retainer", "保持器"],
  statistics: ["statistics", "统计"],
  calculate: ["calculation", "计算"],
  balance: ["balance", "平衡"],
  dashboard: ["dashboard", "仪表盘"],
  rule: ["rule", "规则"],
  campaign: ["campaign", "升级活动"],
  user: ["user", "用户"],
  company: ["company", "公司"],
  service: ["service record", "服务记录"],
  offline: ["offline record", "离线数据"],
  api_key: ["API key", "API 密钥"],
  claim_key: ["claim key", "认领密钥"],
  wall_link: ["link for a wall", "大屏链接"],
});

const PLACES: Record<string, readonly [page: string, to: (hit: Hit) => string]> = {
  terminal: ["terminals", (hit) => link(["terminals", hit.uid])],
  event: ["events", (hit) => link(["events"], { state: "all", event: hit.uid })],
  object: ["objects", (hit) => link(["objects", String(hit.id)])],
  terminal_config: ["terminals", (hit) => link(["terminals"], { configurations: hit.uid })],
  group: ["objects", (hit) => link(["objects"], { group: String(hit.id) })],
  dashboard: ["dashboards", (hit) => link(["dashboards", hit.uid])],
  customer: ["customers", (hit) => link(["customers", hit.uid])],
  retainer: ["events", (hit) => link(["events", "retainers", hit.uid])],
  mapping: ["mapping", (hit) => link(["mapping", "mapping", hit.uid])],
  control: ["mapping", (hit) => link(["mapping", "control", hit.uid])],
  statistics: ["statistics", (hit) => link(["statistics", "statistics", hit.uid])],
  calculate: ["statistics", (hit) => link(["statistics", "calculate", hit.uid])],
  balance: ["statistics", (hit) => link(["statistics", "balance", hit.uid])],
  rule: ["rules", (hit) => link(["rules", hit.uid])],
  campaign: ["campaigns", (hit) => link(["campaigns", hit.uid])],
  user: ["access", (hit) => link(["access", "users"], { search: hit.name })],
  company: ["access", (hit) => link(["access", "companies"], { search: hit.name })],
  service: ["objects", (hit) => link(["objects", String(hit.object_id)], { record: `service-${hit.id}` })],
  offline: ["objects", (hit) => link(["objects", String(hit.object_id)], { record: `offline-${hit.id}` })],
  api_key: ["access", () => link(["access", "api-keys"])],
  claim_key: ["access", () => link(["access", "claim-keys"])],
  wall_link: ["dashboards", (hit) => link(["dashboards", hit.uid], { do: "link" })],
};

/** Where a hit is looked at: its page, and the link; null where no page shows it. */
export function placeOf(hit: Hit, pages: ReadonlySet<string>): string | null {
  const place = PLACES[hit.kind];
  return place && pages.has(place[0]) ? place[1](hit) : null;
}

/** The kinds that some page shows. */
export function kindsShown(pages: ReadonlySet<string>): string[] {
  return Object.entries(PLACES).flatMap(([kind, [page]]) => (pages.has(page) ? [kind] : []));
}

/** What a kind is called. */
export function kindWord(kind: string): Pair {
  return (kinds as Record<string, Pair>)[kind] ?? [kind, kind];
}
