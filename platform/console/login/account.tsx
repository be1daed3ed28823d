/** Who one is: role, language, theme, password, log out. */
import type { ComponentType } from "preact";
import { useEffect, useState } from "preact/hooks";
import { Dialog, Field, Name, PasswordOf, Problem } from "../parts/basics.tsx";
import { call, check, logout, session } from "../shell/api.ts";
import { clock } from "../shell/clock.ts";
import { useSend } from "../shell/hooks.ts";
import { chooseLanguage, chooseTheme, isAccountOpen, type Theme, theme } from "../shell/preferences.ts";
import { tell } from "../shell/toasts.tsx";
import { w as common } from "../words/common.ts";
import { type Language, language, t, words } from "../words/words.ts";

const w = words({
  title: ["Account", "账户"],
  user: ["User", "用户"],
  role: ["Role", "角色"],
  company: ["Company", "公司"],
  superUser: ["super user: sees all companies and the machine", "超级用户：可查看所有公司和本机"],
  zone: ["Time zone", "时区"],
  zoneOf: ["{zone} ({offset}), as the platform has it", "{zone}（{offset}），由平台设定"],
  version: ["Version", "版本"],
  docs: ["API documents", "API 文档"],
  theme: ["Theme", "主题"],
  system: ["as the system", "跟随系统"],
  light: ["light", "浅色"],
  dark: ["dark", "深色"],
  language: ["Language", "语言"],
  password: ["Change the password", "修改密码"],
  factor: ["Second factor", "第二因素"],
  factorOn: ["Second factor: on", "第二因素：已开启"],
  old: ["Present password", "当前密码"],
  fresh: ["New password (at least 8 characters)", "新密码（至少 8 个字符）"],
  repeat: ["New password again", "再次输入新密码"],
  differ: ["The two are not the same.", "两次输入不一致。"],
  changed: ["The password was changed; other sessions have ended.", "密码已修改；其他会话已结束。"],
  logout: ["Log out", "退出登录"],
});

export function Account() {
  const who = session.value;
  const [changing, setChanging] = useState<"password" | "factor" | null>(null);
  if (!who) return null;
  const close = () => (isAccountOpen.value = false);
  const role = { viewer: common.viewer, operator: common.operator, admin: common.admin }[who.role as "viewer"];
  return (
    <Dialog title={t(w.title)} onClose={close}>
      <dl class="facts">
        <dt>{t(w.user)}</dt>
        <dd>
          <Name text={who.username} />
        </dd>
        <dt>{t(w.role)}</dt>
        <dd>{t(who.is_super ? w.superUser : role)}</dd>
        <dt>{t(w.company)}</dt>
        <dd>
          <Name text={who.company} />
        </dd>
        <dt>{t(w.zone)}</dt>
        <dd>{t(w.zoneOf, { zone: who.zone, offset: clock.offset.value })}</dd>
        <dt>{t(w.version)}</dt>
        <dd>
          {who.version} · <a href="docs">{t(w.docs)}</a>
        </dd>
        <dt>{t(w.theme)}</dt>
        <dd>
          <select aria-label={t(w.theme)} value={theme.value} onChange={(event) => chooseTheme(event.currentTarget.value as Theme)}>
            <option value="system">{t(w.system)}</option>
            <option value="light">{t(w.light)}</option>
            <option value="dark">{t(w.dark)}</option>
          </select>
        </dd>
        <dt>{t(w.language)}</dt>
        <dd>
          <select aria-label={t(w.language)} value={language.value} onChange={(event) => chooseLanguage(event.currentTarget.value as Language)}>
            <option value="en" lang="en">
              {"English"}
            </option>
            <option value="zh" lang="zh-CN">
              {"中文"}
            </option>
          </select>
        </dd>
      </dl>
      {changing === "password" && <Password onDone={close} />}
      {changing === "factor" && <Later onDone={close} />}
      {!changing && (
        <footer>
          {!who.by_sso && <button onClick={() => setChanging("password")}>{t(w.password)}</button>}
          {!who.by_sso && <button onClick={() => setChanging("factor")}>{t(who.has_second_factor ? w.factorOn : w.factor)}</button>}
          <button onClick={() => void logout()}>{t(w.logout)}</button>
        </footer>
      )}
    </Dialog>
  );
}

/** Loaded when it is opened. */
function Later({ onDone }: { onDone: () => void }) {
  const [Shown, setShown] = useState<ComponentType<{ onDone: () => void }> | null>(null);
  useEffect(() => void import("./second-factor.tsx").then((module) => setShown(() => module.SecondFactor)), []);
  return Shown && <Shown onDone={onDone} />;
}

function Password({ onDone }: { onDone: () => void }) {
  const [old, setOld] = useState("");
  const [fresh, setFresh] = useState("");
  const [repeat, setRepeat] = useState("");
  const differ = repeat !== "" && repeat !== fresh;
  const { send, isBusy, error } = useSend(async () => {
    if (repeat !== fresh) return;
    await call("change_password", { old_password: old, password: fresh });
    await check();
    tell(t(w.changed));
    onDone();
  });
  return (
    <form class="form" onSubmit={send}>
      <h3>{t(w.password)}</h3>
      <PasswordOf username={session.value?.username ?? ""} />
      <Field label={t(w.old)} type="password" autocomplete="current-password" required value={old} onInput={(e) => setOld(e.currentTarget.value)} />
      <Field label={t(w.fresh)} type="password" autocomplete="new-password" required minLength={8} maxLength={256} value={fresh} onInput={(e) => setFresh(e.currentTarget.value)} />
      <Field label={t(w.repeat)} type="password" autocomplete="new-password" required value={repeat} wrong={differ ? t(w.differ) : ""} onInput={(e) => setRepeat(e.currentTarget.value)} />
      {error !== undefined && <Problem error={error} />}
      <footer>
        <button class="primary" disabled={isBusy}>
          {t(common.save)}
        </button>
      </footer>
    </form>
  );
}
