/** Words of writing objects and their service records. */
import { words } from "../words/words.ts";

export const w = words({
  add: ["Add an object", "添加对象"],
  edit: ["Edit", "编辑"],
  editNamed: ["Edit {name}", "编辑 {name}"],
  saved: ["Saved", "已保存"],
  mapping: ["Mapping", "映射"],
  control: ["Control table", "控制表"],
  customer: ["Customer", "客户"],
  terminals: ["Terminals", "终端"],
  terminalsHint: ["Uids, with spaces, commas or lines between them; in a mapping, $AdapterID-1 is the first.", "终端 uid，以空格、逗号或换行分隔；映射中 $AdapterID-1 为第一个。"],
  province: ["Province", "省份"],
  city: ["City", "城市"],
  gis: ["Place on the map", "地图位置"],
  gisHint: ["Latitude and longitude in degrees (WGS 84), as in 31.2990,120.5853", "纬度和经度（度，WGS 84），例如 31.2990,120.5853"],
  remove: ["Remove", "删除"],
  removeNamed: ["Remove {name}", "删除 {name}"],
  removeAsk: ["Its record goes, and with it its place on dashboards. The values that it had stay for as long as values are kept.", "其记录将被删除，仪表盘上也不再显示。已有的数值会保留到保留期结束。"],
  removed: ["Removed", "已删除"],
  groupAdd: ["New group", "新建分组"],
  groupRename: ["Rename", "重命名"],
  groupNamed: ["Group {name}", "分组 {name}"],
  groupRemoveAsk: ["The group goes; its objects stay.", "分组将被删除；其中的对象保留。"],
  groupJoin: ["Put into a group", "加入分组"],
  groupLeave: ["Take out of {name}", "移出 {name}"],
  record: ["Write a record", "填写记录"],
  recordOf: ["Service record of {name}", "{name} 的维修记录"],
  what: ["What was done", "做了什么"],
  kind: ["Kind", "类别"],
  staff: ["By whom", "人员"],
});

/** The kinds of service records, as the platform's interface has them. */
export const CATEGORIES: Readonly<Record<string, readonly [english: string, chinese: string]>> = {
  定期保养: ["regular maintenance", "定期保养"],
  报警处理: ["alarm handled", "报警处理"],
  故障排除: ["fault mended", "故障排除"],
  日常巡检: ["daily inspection", "日常巡检"],
  设备维修: ["equipment repaired", "设备维修"],
  其他: ["other", "其他"],
};
