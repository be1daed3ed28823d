/** What the broker counts, in words; a counter that has none keeps its name, as of a newer platform. */
import { type Pair, t, words } from "../words/words.ts";

const w = words({
  connections: ["Connections now", "当前连接"],
  clients: ["Clients now", "当前客户端"],
  sessions: ["Sessions now", "当前会话"],
  subscriptions: ["Subscriptions now", "当前订阅"],
  accepted: ["Connections accepted", "接受的连接"],
  connects: ["Logins", "登录"],
  connects_refused: ["Logins refused", "拒绝的登录"],
  takeovers: ["Taken over by a new connection", "被新连接接管"],
  messages_in_qos0: ["Messages in, QoS 0", "接收消息 QoS 0"],
  messages_in_qos1: ["Messages in, QoS 1", "接收消息 QoS 1"],
  messages_in_qos2: ["Messages in, QoS 2", "接收消息 QoS 2"],
  messages_out: ["Messages out", "发送消息"],
  messages_taken: ["Messages handed to storage", "交付存储的消息"],
  messages_dropped: ["Messages dropped", "丢弃的消息"],
  publishes_refused: ["Publishes refused", "拒绝的发布"],
  subscribes_refused: ["Subscriptions refused", "拒绝的订阅"],
  bytes_in: ["Bytes in", "接收字节"],
  bytes_out: ["Bytes out", "发送字节"],
  protocol_errors: ["Protocol errors", "协议错误"],
  keepalive_timeouts: ["Silent beyond keep alive", "保活超时"],
  connect_timeouts: ["Too slow to log in", "登录超时"],
  limited_connections: ["Refused: too many clients", "拒绝：客户端过多"],
  limited_connect_rate: ["Refused: too many logins at once", "拒绝：同时登录过多"],
  limited_owner_queues: ["Refused: queues full", "拒绝：队列已满"],
  limited_subscriptions: ["Refused: too many subscriptions", "拒绝：订阅过多"],
  limited_half_open: ["Refused: too many without a login", "拒绝：未登录连接过多"],
  half_open_ended: ["Without a login, made room", "未登录而被让出"],
  ended_unread: ["Ended: did not read", "断开：未读取数据"],
  connects_delayed: ["Logins that waited", "等待过的登录"],
  handshakes_failed: ["TLS handshakes failed", "TLS 握手失败"],
  proxy_headers_refused: ["Proxy headers refused", "拒绝的代理头"],
  upgrades_refused: ["WebSocket upgrades refused", "拒绝的 WebSocket 升级"],
  wills_sent: ["Wills sent", "发送的遗嘱"],
  retained_messages: ["Retained messages now", "当前保留消息"],
  retained_bytes: ["Retained bytes", "保留消息字节"],
  retained_memory_bytes: ["Retained bytes in memory", "保留消息内存字节"],
  retained_ended: ["Retained messages removed", "删除的保留消息"],
  storage_commits: ["Commits to disk", "写盘提交"],
  storage_failures: ["Commits that failed", "失败的提交"],
  storage_refusals: ["Refused: storage cannot keep up", "拒绝：存储跟不上"],
  work_deferred: ["Work put off", "推迟的工作"],
  rate_limited: ["Slowed down: above their rate", "限速：超过速率"],
  publishers_slowed: ["Slowed down: storage is behind", "限速：存储落后"],
  hook_failures: ["Failures of hooks", "钩子失败"],
  task_failures: ["Failures of tasks", "任务失败"],
  internal_errors: ["Internal errors", "内部错误"],
});

/** A counter's words. */
export function counterWord(name: string): string {
  const known = Object.hasOwn(w, name) ? (w as Record<string, Pair>)[name] : undefined;
  return known ? t(known) : name.replaceAll("_", " ");
}
