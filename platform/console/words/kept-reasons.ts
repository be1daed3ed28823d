/**
 * Why commands, campaigns, messages and replays ended or wait again, why a balance has no fit and a bridge is down, in Chinese, by what the platform keeps of it
 * (platform/terrazzo/domain/command.py and campaign_item.py, messenger/message.py, ports/providers.py, analysis/regression.py, mapping/replay/reasons.py, ports/bridge.py); {name} stands for
 * what differs. tests/console/test_console_reasons.py fails where one is missing or too much.
 */
import type { Language } from "./words.ts";

export const KEPT_REASONS: Readonly<Record<string, string>> = {
  "the terminal was deleted": "终端已被删除",
  "the terminal was not there in time": "终端未能及时上线",
  "sent, not acknowledged in time": "已发送，未及时确认",
  "refused by the terminal": "终端拒绝",
  "the session ended before the terminal acknowledged it": "终端确认之前会话已结束",
  "the campaign was paused": "升级活动已暂停",
  "the campaign was aborted": "升级活动已中止",
  "recalled by {user}": "由 {user} 撤回",
  "had the version already": "已是该版本",
  "came back with version {version}": "恢复连接后版本为 {version}",
  "the terminal reports a failure": "终端报告失败",
  "did not report version {version} within {seconds} s": "未在 {seconds} 秒内上报版本 {version}",
  "{failed} of the {ended} terminals that ended have failed": "已结束的 {ended} 台终端中有 {failed} 台失败",
  "the attempt was interrupted: it may have arrived": "发送过程被中断：可能已送达",
  "the platform ended while it was being sent: it may have arrived": "平台在发送过程中停止：可能已送达",
  "interrupted before it was sent": "发送前被中断",
  "the configuration has no {channel} in project {project}": "配置中项目 {project} 没有 {channel} 通道",
  "internal error during the attempt; the log has it": "发送时发生内部错误；详见日志",
  "given up after {attempts} attempts: {reason}": "尝试 {attempts} 次后放弃：{reason}",
  "the project is no longer configured": "该项目已不在配置中",
  "the rule was deleted": "规则已被删除",
  "the provider answered {status}, code {code}": "服务商返回 {status}，代码 {code}",
  "no answer within {seconds} s": "{seconds} 秒内没有应答",
  "{host} is not a public address (messenger.allow_private)": "{host} 不是公网地址（messenger.allow_private）",
  "{host} is not an address": "{host} 不是地址",
  "not an address: {error}": "不是有效的地址：{error}",
  "not an e-mail: {error}": "不是有效的邮件：{error}",
  "login refused: {said}": "登录被拒绝：{said}",
  "the server can't do what is configured: {said}": "服务器不支持所配置的功能：{said}",
  "no answer after the mail was handed over: {error}": "邮件交付后没有应答：{error}",
  "points in common: {points}, needed: {fewest}": "共同的数据点：{points} 个，至少需要 {fewest} 个",
  "{codes} does not change": "{codes} 没有变化",
  "the inputs depend on each other": "各输入之间相互依赖",
  "the inputs say nothing of the target": "输入与目标无关",
  "numbers too large or too close to each other to reckon with": "数值过大或过于接近，无法计算",
  "more than {most} events and labels happened: choose a shorter range": "产生的事件和标签超过 {most} 个：请缩短时间范围",
  "reports keep coming to the range: try again when the terminals have sent what they kept": "该时间范围内仍不断有新上报：请等终端补发完数据后重试",
  "the object has no mapping that is in force, or is not available": "对象没有生效的映射，或已停用",
  "the object, its mapping or its retainers were changed meanwhile: replay it again": "对象、映射或保持器在此期间被修改：请重新重算",
  "not known from the {days} days before the range: {codes}": "在该范围之前 {days} 天内未知：{codes}",
  "it was interrupted {times} times": "已被中断 {times} 次",
  "an internal error, which the log has": "内部错误；详见日志",
  "the remote broker refused to subscribe us to {filters}": "远端代理拒绝订阅 {filters}",
  "no connection to {host}:{port}: {reason}": "无法连接 {host}:{port}：{reason}",
  "a message was not sent: {reason}": "有消息未发送：{reason}",
  "{topic} from the remote broker is refused: {reason}": "远端代理发来的 {topic} 被拒绝：{reason}",
  "the bridge's company is closed": "该桥接所属公司已关闭",
  "what came in could not be stored and is not acknowledged; it has to be sent again over a new connection": "收到的内容无法存储，未予确认；须经新连接重新发送",
  "given up": "已放弃",
  "closed": "已关闭",
  "the remote broker sent a malformed packet: {error}": "远端代理发送了格式错误的报文：{error}",
  "the remote broker ended the connection: {said}": "远端代理结束了连接，原文：{said}",
  "connection lost: {error}": "连接中断，原文：{error}",
  "not a host name: {error}": "不是有效的主机名：{error}",
  "its topic is not UTF-8": "其主题不是 UTF-8",
  "no rule names this topic": "没有规则包含该主题",
  "no rule for {topic} any more": "{topic} 已没有对应的规则",
  "the remote broker has no room (0x97)": "远端代理没有空间（0x97）",
  "refused with 0x{number}": "被拒绝，代码 0x{number}",
  "no answer in time": "没有及时应答",
};
const MOST_CHARS = 300;
const MOST_WITHIN = 2; // reasons in each other

const patterns = Object.entries(KEPT_REASONS).map(([english, chinese]) => {
  const names = [...english.matchAll(/\{(\w+)\}/g)].map((found) => found[1] ?? "");
  return { pattern: new RegExp(`^${english.replace(/\{\w+\}/g, "(.+)")}$`), names, chinese };
});

/** A reason in the language that is shown; what people, terminals or servers said stays as it is. */
export function keptReason(text: string, shown: Language, depth = 0): string {
  if (shown !== "zh" || text.length > MOST_CHARS) return text;
  for (const { pattern, names, chinese } of patterns) {
    const found = pattern.exec(text);
    if (!found) continue;
    const value = (name: string): string => found[1 + names.indexOf(name)] ?? "";
    return chinese.replace(/\{(\w+)\}/g, (_, name: string) => (name === "reason" && depth < MOST_WITHIN ? sentReason(value(name), shown, depth + 1) : value(name)));
  }
  return text;
}

/** Why a message was not sent: one reason, or one for each recipient of an e-mail, with the server's code. */
export function sentReason(text: string, shown: Language, depth = 0): string {
  const worded = keptReason(text, shown, depth);
  if (shown !== "zh" || worded !== text) return worded;
  return text
    .split("; ")
    .map((each) => {
      const found = /^([^\s:]+@[^\s:]+): (\d{3} )?(.*)$/s.exec(each);
      return found ? `${found[1] ?? ""}：${found[2] ?? ""}${keptReason(found[3] ?? "", shown, depth)}` : each;
    })
    .join("；");
}
