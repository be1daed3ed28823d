/** What a search finds beside pages and records: parts of pages, and what one can begin. Loaded when one searches. */
import { w as access } from "../access/words.ts";
import { w as broker } from "../broker/words.ts";
import { w as campaigns } from "../campaigns/words.ts";
import { w as commands } from "../commands/words.ts";
import { w as customers } from "../customers/words.ts";
import { w as dashboards } from "../dashboards/words.ts";
import { w as events } from "../events/words.ts";
import { w as mapping } from "../mapping/words.ts";
import { w as editing } from "../objects/edit-words.ts";
import { w as objects } from "../objects/words.ts";
import { w as rules } from "../rules/words.ts";
import { w as statistics } from "../statistics/words.ts";
import { words as bulk } from "../terminals/bulk-words.ts";
import { w as configurations } from "../terminals/config-words.ts";
import { w as terminals } from "../terminals/words.ts";
import { type Pair, words } from "../words/words.ts";
import type { Role } from "./api.ts";
import type { titles } from "./pages.ts";

/** What the shell has of it: imported here it would be loaded in pieces of its own, from the first page on. */
export interface Shell {
  titles: typeof titles;
  open: (path: readonly string[], query: Query) => void;
  account: () => void;
  theme: (chosen: "light" | "dark") => void;
  language: (chosen: "en" | "zh") => void;
  logout: () => void;
}

const w = words({
  newStatistics: ["New statistics script", "新建统计脚本"],
  newCalculation: ["New calculation", "新建计算"],
  newBalance: ["New balance", "新建平衡"],
  newRetainer: ["New retainer", "新建保持器"],
  account: ["Account", "账户"],
  dark: ["Dark theme", "深色主题"],
  light: ["Light theme", "浅色主题"],
  english: ["English", "English（英文）"],
  chinese: ["中文 (Chinese)", "中文"],
  logout: ["Log out", "退出登录"],
});

export interface Place {
  title: Pair;
  /** The page that it is of. */
  of: Pair;
  isAction: boolean;
  open: () => void;
  role?: Role | "super";
}

type Query = Record<string, string>;

/** All of them, for all roles. */
export function placesOf(shell: Shell): readonly Place[] {
  const part = (of: keyof typeof titles, title: Pair, path: string[] = [], query: Query = {}, role?: Role | "super"): Place => {
    return { title, of: shell.titles[of], isAction: false, open: () => shell.open([of, ...path], query), ...(role ? { role } : {}) };
  };
  const action = (of: keyof typeof titles, title: Pair, path: string[] = [], query: Query = { do: "add" }, role: Role | "super" = "admin"): Place => {
    return { ...part(of, title, path, query, role), isAction: true };
  };
  const made = (of: keyof typeof titles, title: Pair, open: () => Promise<void>): Place => ({ title, of: shell.titles[of], isAction: true, open: () => void open(), role: "admin" });
  const own = (title: Pair, open: () => void): Place => ({ title, of: w.account, isAction: true, open });
  return [
    part("events", events.labels, ["labels"]),
    part("events", events.retainers, ["retainers"]),
    part("events", events.handover, ["handover"]),
    part("terminals", terminals.unknownOnes, [], { unknown: "1" }),
    part("terminals", terminals.configurations, [], { configurations: "1" }),
    action("terminals", bulk.create),
    action("terminals", bulk.importButton, [], { do: "import" }),
    part("objects", objects.map, [], { view: "map" }),
    action("terminals", configurations.add, [], { configurations: "1", do: "add" }),
    action("objects", editing.add),
    action("objects", editing.groupAdd, [], { do: "group" }),
    made("dashboards", dashboards.create, async () => (await import("../dashboards/list.tsx")).create()),
    part("commands", commands.expiredTab, ["expired"]),
    part("mapping", mapping.controls, ["control"]),
    made("mapping", mapping.newMapping, async () => (await import("../mapping/list.tsx")).create("mapping")),
    made("mapping", mapping.newControl, async () => (await import("../mapping/list.tsx")).create("control")),
    part("statistics", statistics.calculate, ["calculate"]),
    part("statistics", statistics.balance, ["balance"]),
    action("statistics", w.newStatistics),
    action("statistics", w.newCalculation, ["calculate"]),
    action("statistics", w.newBalance, ["balance"]),
    action("events", w.newRetainer, ["retainers"]),
    part("rules", rules.messages, ["messages"], {}, "operator"),
    action("rules", rules.add),
    action("campaigns", campaigns.add),
    action("customers", customers.add),
    part("broker", broker.subscriptions, ["subscriptions"]),
    part("broker", broker.retained, ["retained"]),
    part("broker", broker.now, ["now"], {}, "super"),
    part("broker", broker.bridges, ["bridges"], {}, "super"),
    part("access", access.users, [], {}, "admin"),
    part("access", access.companies, ["companies"], {}, "super"),
    part("access", access.apiKeys, ["api-keys"]),
    part("access", access.claimKeys, ["claim-keys"], {}, "admin"),
    part("access", access.failures, ["failures"], {}, "admin"),
    action("access", access.addUser),
    action("access", access.addCompany, ["companies"], { do: "add" }, "super"),
    action("access", access.addKey, ["api-keys"], { do: "add" }, "viewer"),
    action("access", access.addClaim, ["claim-keys"]),
    own(w.account, () => shell.account()),
    own(w.dark, () => shell.theme("dark")),
    own(w.light, () => shell.theme("light")),
    own(w.english, () => shell.language("en")),
    own(w.chinese, () => shell.language("zh")),
    own(w.logout, () => shell.logout()),
  ];
}
