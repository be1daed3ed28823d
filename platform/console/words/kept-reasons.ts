/**
 * Why commands and campaigns ended or wait again, in Chinese, by what the platform keeps of it (platform/terrazzo/domain/command.py and
 * campaign_item.py); {name} stands for what differs. tests/console/test_console_reasons.py fails where one is missing or too much.
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
};
const MOST_CHARS = 300;

const patterns = Object.entries(KEPT_REASONS).map(([english, chinese]) => {
  const names = [...english.matchAll(/\{(\w+)\}/g)].map((found) => found[1] ?? "");
  return { pattern: new RegExp(`^${english.replace(/\{\w+\}/g, "(.+)")}$`), names, chinese };
});

/** A reason in the language that is shown; what people or terminals said stays as it is. */
export function keptReason(text: string, shown: Language): string {
  if (shown !== "zh" || text.length > MOST_CHARS) return text;
  for (const { pattern, names, chinese } of patterns) {
    const found = pattern.exec(text);
    if (found) return chinese.replace(/\{(\w+)\}/g, (_, name: string) => found[1 + names.indexOf(name)] ?? "");
  }
  return text;
}
