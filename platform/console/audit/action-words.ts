/** What entries of the audit log say was done, by its code; tests/console/test_console_reasons.py looks for all of them. */
import { t, words } from "../words/words.ts";

const w = words({
  create: ["create", "创建"],
  update: ["update", "更改"],
  delete: ["delete", "删除"],
  command: ["command", "命令"],
  command_refused: ["command refused", "命令被拒"],
  recall: ["recall", "撤回命令"],
  login: ["login", "登录"],
  login_refused: ["login refused", "登录被拒"],
  logout: ["logout", "退出"],
  kick: ["disconnect", "断开"],
  end_tokens: ["end sessions", "结束会话"],
  rotate: ["rotate key", "轮换密钥"],
  unlock: ["unlock", "解锁"],
  mail_reset_code: ["mail reset code", "发送重置码"],
  reset_password: ["reset password", "重置密码"],
  renew_recovery_codes: ["renew recovery codes", "更新恢复代码"],
  run_missed: ["run missed", "错过计划"],
  replay: ["replay", "重算"],
  cancel_replay: ["cancel replay", "取消重算"],
  recompute: ["recompute", "重新计算"],
  send: ["send", "发送"],
  trace: ["trace", "报文跟踪"],
});

/** An action in the language that is shown; one that is not known as it is. */
export function actionWord(code: string): string {
  return code in w ? t(w[code as keyof typeof w]) : code;
}
