/**
 * Names of the platform's long-lived tasks and of the parts that `/readyz` asks, in Chinese; {name} stands for what differs.
 * tests/console/test_console_reasons.py fails where a task that the source starts is missing, or one is too much.
 */
export const TASK_NAMES: Readonly<Record<string, string>> = {
  "{port} accept {host}:{number}": "{port} 接受连接 {host}:{number}",
  "attention told": "待处理事项通知",
  "analysis": "统计计算",
  "answers to commands": "命令应答",
  "backup": "备份",
  "bridge {name}": "桥接 {name}",
  "bridge {name} reader": "桥接 {name} 读取",
  "bridge {name} writer": "桥接 {name} 写入",
  "broker accept {listener} {host}:{port}": "消息代理接受连接 {listener} {host}:{port}",
  "broker sweep": "消息代理清理",
  "campaigns": "升级活动",
  "certificates": "证书",
  "changes": "记录变更",
  "client authorities": "客户端证书机构",
  "client ids that other nodes take": "其他节点接管的客户端标识",
  "command expiry": "命令过期",
  "command journal": "命令日志",
  "commands of rules": "规则的命令",
  "configurations of terminals": "终端配置",
  "configurations to send": "待发送配置",
  "demo": "演示",
  "disk space": "磁盘空间",
  "drain of this front": "本前端排空",
  "effects": "事件与标签",
  "event expiry": "事件到期",
  "events of this front": "本前端事件",
  "follower": "跟随日志",
  "former terminals": "曾有的终端",
  "free memory": "空闲内存",
  "heartbeat": "心跳",
  "influxdb spool": "InfluxDB 暂存",
  "ingest writer": "接收写入",
  "lease": "主节点租约",
  "lease of this front": "本前端租约",
  "leases of fronts": "前端租约",
  "live frames": "实时数据",
  "live reports": "实时长报文",
  "live sweep": "实时清理",
  "mapping plans {n}": "映射编译 {n}",
  "mapping rows": "映射行",
  "memory shares": "内存配额",
  "messages for sessions from the log": "日志到会话的消息",
  "messages for sessions to the log": "会话到日志的消息",
  "messages to fronts": "发往前端的消息",
  "messenger {project}.{number}": "消息发送 {project}.{number}",
  "node record": "节点记录",
  "object flags": "对象标志",
  "offline data": "离线数据",
  "password resets": "密码重设",
  "payload decoders": "负载解码",
  "position of the database": "数据库位置",
  "presence pruned": "在线记录清理",
  "presence written": "在线记录写入",
  "progress of analyses": "统计进度",
  "questions of replicas": "副本的询问",
  "reads": "读取",
  "refusals told": "拒绝通知",
  "refusals written": "拒绝记录写入",
  "refused logins": "拒绝的登录",
  "removal of what sessions have": "会话数据删除",
  "replays": "重放",
  "replays {n}": "重放 {n}",
  "reports of fronts": "前端上报",
  "requests of other nodes": "其他节点的请求",
  "requests to this node": "对本节点的请求",
  "retained messages of all nodes": "所有节点的保留消息",
  "retained messages to the log": "保留消息写入日志",
  "retention": "数据保留",
  "retention of deleted terminals": "已删除终端的数据保留",
  "retention of companies' series": "各公司时序数据的保留期限",
  "disk of companies": "各公司磁盘占用",
  "sizes of time series": "时序数据占用统计",
  "retention of records": "记录保留",
  "rocksdb columns": "RocksDB 列",
  "rocksdb sealing": "RocksDB 封存",
  "rules": "规则",
  "rules about terminals": "终端规则",
  "series of terminals": "终端序列",
  "service watchdog": "服务看门狗",
  "sessions of all nodes": "所有节点的会话",
  "sessions of dead nodes": "失效节点的会话",
  "spans": "追踪",
  "states of sessions to the log": "会话状态写入日志",
  "terminal activations": "终端激活",
  "terminals out of service": "停用的终端",
  "time of requests": "请求时间",
  "trimming of the fronts' log": "前端日志修剪",
  "trimming of the log": "日志修剪",
  "unfinished imports": "未完成的导入",
  "use of API keys": "API 密钥使用记录",
  "what is due of sessions": "会话到期事项",
  "what other nodes are told": "通知其他节点",
  "what other nodes tell": "其他节点的通知",
  "what waits for sessions": "会话等待的消息",
  "which other nodes are there": "其他节点状态",
};

const PART_NAMES: Readonly<Record<string, string>> = {
  cluster: "集群",
  database: "数据库",
  ingest: "接收",
  mqtt: "MQTT",
  store: "时序存储",
  tcp: "TCP",
  websocket: "WebSocket",
};

const patterns = Object.entries(TASK_NAMES)
  .map(([english, chinese]) => {
    const names = [...english.matchAll(/\{(\w+)\}/g)].map((found) => found[1] ?? "");
    return { pattern: new RegExp(`^${english.replace(/\{\w+\}/g, "(.+)")}$`), names, chinese, fixed: english.replace(/\{\w+\}/g, "").length };
  })
  .sort((one, other) => other.fixed - one.fixed); // what says more first

/** A task or part in Chinese; null: there are no words for it, as of a newer platform. */
export function taskInChinese(name: string): string | null {
  if (Object.hasOwn(PART_NAMES, name)) return PART_NAMES[name] ?? null;
  for (const { pattern, names, chinese } of patterns) {
    const found = pattern.exec(name);
    if (found) return chinese.replace(/\{(\w+)\}/g, (_, place: string) => found[1 + names.indexOf(place)] ?? "");
  }
  return null;
}
