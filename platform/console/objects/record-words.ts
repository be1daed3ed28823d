/** Words of what people write of an object: service records, offline data, files. */
import { t, words } from "../words/words.ts";

export const w = words({
  services: ["Service records", "服务记录"],
  noServices: ["No service was recorded.", "没有服务记录。"],
  collected: ["Offline data", "离线数据"],
  noCollected: ["Nothing was collected.", "没有采集数据。"],
  files: ["Files", "文件"],
  noFiles: ["No file belongs to it.", "没有关联的文件。"],
  fileAdd: ["Add files", "添加文件"],
  fileUnderWay: ["File {i} of {n} …", "第 {i} 个，共 {n} 个…"],
  filesAdded: ["{n} {n|file|files} added", "已添加 {n} 个文件"],
  fileSave: ["Save {name}", "保存 {name}"],
  fileRemoveNamed: ["Remove the file {name}", "删除文件 {name}"],
  fileRemoveAsk: ["The file is deleted for good, unless another record names it.", "文件将被永久删除，除非有其他记录引用它。"],
  fileRemoveShared: ["{n} more {n|object has|objects have} the same files: it goes there, too.", "另有 {n} 个对象使用相同的文件：那里也会一并删除。"],
  saved: ["Saved", "已保存"],
  write: ["Write a record", "填写记录"],
  serviceOf: ["Service record of {name}", "{name} 的服务记录"],
  collectOf: ["Offline data of {name}", "{name} 的离线数据"],
  changeNamed: ["Change {name}", "修改 {name}"],
  serviceRemoveAsk: ["The record is gone for good.", "该记录将被永久删除。"],
  collectRemoveAsk: [
    "The record is gone for good; variables that are mapped from it have the value of the record before.",
    "该记录将被永久删除；由其映射的变量将取前一条记录的值。",
  ],
  collect: ["Write a value", "填写数值"],
  project: ["Project", "项目"],
  projectHint: ["What is collected; a mapping's COL row names it.", "采集的内容；映射表的 COL 行以此引用。"],
  newProject: ["a new project …", "新建项目…"],
  projectName: ["Name of the new project", "新项目名称"],
  noProjects: [
    "There is no project yet to collect for: an administrator makes one when writing the first value.",
    "尚无可采集的项目：管理员填写第一个数值时可新建。",
  ],
  collectHint: ["A number, or text; a variable of the object that is mapped from the project has it at once.", "数字或文本；由该项目映射的对象变量会立即取得此值。"],
  what: ["What was done", "做了什么"],
  kind: ["Kind", "类别"],
  staff: ["By whom", "人员"],
  note: ["Note", "备注"],
  older: ["Older ones", "更早的记录"],
  shown: ["{shown} of {n}", "{shown} / {n}"],
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

export function categoryWord(category: string): string {
  const known = CATEGORIES[category];
  return known ? t(known) : category;
}
