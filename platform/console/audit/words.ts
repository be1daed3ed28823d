/** Words of the audit log. */
import { words } from "../words/words.ts";

export const w = words({
  who: ["User", "用户"],
  what: ["What", "操作"],
  entity: ["Kind of record", "记录类型"],
  anyEntity: ["all kinds", "所有类型"],
  record: ["Record", "记录"],
  from: ["From", "来源"],
  when: ["When", "时间"],
  none: ["No entries", "没有记录"],
  noneDo: ["Whatever somebody changes or commands stands here.", "任何更改或命令都会记录在此。"],
  start: ["From day", "起始日期"],
  end: ["To day", "结束日期"],
  open: ["{what}: show entry {id}", "{what}：查看记录 {id}"],
  entry: ["Audit entry {id}", "审计记录 {id}"],
  before: ["Before", "之前"],
  after: ["After", "之后"],
  field: ["Field", "字段"],
  batch: ["All that was done at once", "同一批次的全部操作"],
  user: ["User name", "用户名"],
});
