/** Kinds of records in the audit log, by their names in the platform; tests/console/test_console_reasons.py looks for all of them. */
import { t, words } from "../words/words.ts";

const w = words({
  api_key: ["API key", "API 密钥"],
  balance: ["balance", "平衡"],
  calculate: ["calculation", "计算"],
  campaign: ["campaign", "升级活动"],
  claim_key: ["claim key", "认领密钥"],
  collect: ["offline record", "离线数据"],
  collectos: ["project of offline data", "离线数据项目"],
  command: ["command", "命令"],
  company: ["company", "公司"],
  configuration: ["configuration", "配置"],
  control: ["control table", "控制表"],
  customer: ["customer", "客户"],
  dashboard: ["dashboard", "仪表盘"],
  event: ["event", "事件"],
  file: ["file record", "文件记录"],
  handover: ["handover", "交接班"],
  key: ["key", "密钥"],
  label: ["label", "标签"],
  mapping: ["mapping", "映射"],
  message: ["message", "消息"],
  object: ["object", "对象"],
  object_dashboard: ["dashboard of an object", "对象的仪表盘"],
  object_group: ["group", "分组"],
  object_group_map: ["object of a group", "分组中的对象"],
  project: ["project", "项目"],
  retainer: ["retainer", "保持器"],
  rule: ["rule", "规则"],
  service: ["service record", "服务记录"],
  statistics: ["statistics", "统计"],
  terminal: ["terminal", "终端"],
  terminal_authority: ["authority of certificates", "证书机构"],
  upload: ["uploaded file", "上传文件"],
  user: ["user", "用户"],
  wall_link: ["link for a wall", "大屏链接"],
});

/** All of them. */
export const ENTITIES = Object.keys(w);

/** A kind in the language that is shown; one that is not known as it is. */
export function entityWord(name: string): string {
  return Object.hasOwn(w, name) ? t(w[name as keyof typeof w]) : name;
}
