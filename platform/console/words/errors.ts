/** What happened and what can be done, for each way in which a request can fail. */
import { GatewayError, Unreachable } from "terrazzo-client";
import { serverText } from "./server-text.ts";
import { t, words } from "./words.ts";

const w = words({
  unreachable: ["The platform does not answer.", "平台没有响应。"],
  unreachableDo: ["It is tried again by itself; what is shown may be old meanwhile.", "系统会自动重试；期间显示的内容可能已过时。"],
  parameter: ["Not accepted: {info}", "未被接受：{info}"],
  parameterDo: ["Change what is named and try again.", "请修改所指出的内容后重试。"],
  authentication: ["You are not logged in any more.", "您已退出登录。"],
  authenticationDo: ["Log in again; what you typed stays.", "请重新登录；您输入的内容会保留。"],
  permission: ["Your role does not allow this: {info}", "您的角色不允许此操作：{info}"],
  permissionDo: ["Ask an administrator of your company.", "请联系贵公司的管理员。"],
  missing: ["It is not there (any more): {info}", "该内容（已）不存在：{info}"],
  missingDo: ["Somebody may have removed it; go back to the list.", "可能已被他人删除；请返回列表。"],
  busy: ["The platform is at a limit: {info}", "平台已达到限制：{info}"],
  busyDo: ["Wait a moment and try again.", "请稍候再试。"],
  unstored: ["The platform cannot store anything now: {info}", "平台目前无法存储任何数据：{info}"],
  unstoredDo: ["What you typed is kept. Free some of its disk, then try again.", "您输入的内容已保留。请释放其磁盘空间后重试。"],
  inside: ["The platform could not do it: {info}", "平台无法完成：{info}"],
  insideDo: ["Try again; the platform's log says more.", "请重试；平台日志中有更多信息。"],
  page: ["This page could not be loaded.", "无法加载此页面。"],
  pageDo: ["The platform may have been upgraded: reload.", "平台可能已升级：请刷新。"],
});

const FULL = /disk|no space|file too large/i; // what a database and a store say of it

export interface Told {
  what: string;
  todo: string;
}

/** Words an error for people. */
export function explain(error: unknown): Told {
  if (error instanceof Unreachable) return { what: t(w.unreachable), todo: t(w.unreachableDo) };
  if (!(error instanceof GatewayError)) {
    const info = error instanceof Error ? error.message : String(error);
    if (error instanceof TypeError && /import|module|fetch/i.test(info)) return { what: t(w.page), todo: t(w.pageDo) };
    return { what: t(w.inside, { info }), todo: t(w.insideDo) };
  }
  const info = serverText(error.info, error.reason);
  switch (error.code) {
    case 10401:
      return { what: t(w.parameter, { info }), todo: t(w.parameterDo) };
    case 10402:
      return { what: t(w.authentication), todo: t(w.authenticationDo) };
    case 10403:
      return { what: t(w.permission, { info }), todo: t(w.permissionDo) };
    case 10404:
      return { what: t(w.missing, { info }), todo: t(w.missingDo) };
  }
  if (error.status === 503 && FULL.test(error.info)) return { what: t(w.unstored, { info }), todo: t(w.unstoredDo) };
  if (error.status === 503 || error.status === 429) return { what: t(w.busy, { info }), todo: t(w.busyDo) };
  return { what: t(w.inside, { info }), todo: t(w.insideDo) };
}
