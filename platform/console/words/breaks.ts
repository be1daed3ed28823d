/** Why a connection ended, in Chinese: the broker's words; what somebody else said stays as it was said. Loaded when somebody reads Chinese. */

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
  "disconnected by the server": "被平台断开",
  administrative_action: "管理操作",
  session_taken_over: "会话已被接管",
  use_another_server: "改用其他服务器",
  disconnected: "终端主动断开",
};

/** `why`, or `why: more`; null where it is not the broker's. */
export function breakInChinese(reason: string): string | null {
  const parts = reason.split(": ");
  if (!Object.hasOwn(CHINESE, parts[0] ?? "")) return null;
  return parts.map((each) => (Object.hasOwn(CHINESE, each) && CHINESE[each]) || each).join("：");
}
