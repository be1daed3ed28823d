/** Why a connection ended, in the language that is shown: the broker's words, or where somebody else said it, as it was said. */
import { language } from "../words/words.ts";

const CHINESE: Record<string, string> = {
  "keep-alive timeout": "超过 keep-alive 时间没有通信",
  "taken over": "相同客户端 ID 在别处登录",
  "server shutting down": "平台正在停止",
  "the platform was not running": "平台未运行",
  "internal error": "平台内部错误",
  "no CONNECT in time": "未及时登录",
  "messages can't be stored": "消息无法存储",
  "messages can't be stored at the moment": "消息暂时无法存储",
  "messages can't be read": "消息无法读取",
  "sessions can't be stored": "会话无法存储",
  "made room for others": "为其他连接让出位置",
  "does not read, and memory is short": "内存紧张时没有读取消息",
  "slow consumer": "读取过慢",
  disconnected: "终端主动断开",
};

/** The reason of a break. */
export function breakText(reason: string): string {
  return (language.value === "zh" && CHINESE[reason]) || reason;
}
