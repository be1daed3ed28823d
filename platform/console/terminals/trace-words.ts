/** Words of the live trace. */
import { words } from "../words/words.ts";

export const w = words({
  tab: ["Trace", "报文跟踪"],
  title: ["Packets as they pass", "实时报文"],
  on: ["tracing", "跟踪中"],
  off: ["off", "未开启"],
  left: ["{time} left, begun by {by}", "剩余 {time}，由 {by} 开启"],
  start: ["Trace", "开始跟踪"],
  stop: ["Stop", "停止"],
  length: ["For", "时长"],
  minutes: ["{n} {n|minute|minutes}", "{n} 分钟"],
  pause: ["Pause", "暂停"],
  goOn: ["Go on", "继续"],
  kind: ["Packets", "报文类型"],
  allKinds: ["all packets", "全部报文"],
  none: ["Nothing is traced", "未在跟踪"],
  noneDo: ["Start it: packets appear here for some minutes, passwords and secrets masked. The audit log says who looked.", "开始后，报文会在此显示数分钟，密码与密钥已遮蔽。审计日志会记录查看者。"],
  waiting: ["No packet has passed yet", "尚无报文"],
  waitingDo: ["They appear as soon as the terminal sends something, or connects.", "终端发送数据或接入后会立即显示。"],
  fromTerminal: ["from the terminal", "来自终端"],
  toTerminal: ["to the terminal", "发往终端"],
  missed: ["{n} not shown", "{n} 条未显示"],
  hex: ["hexadecimal", "十六进制"],
});
