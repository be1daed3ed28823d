/** One's own second factor: turning it on and off, other recovery codes. */
import { useState } from "preact/hooks";
import { Code, Field, PasswordOf, Problem } from "../parts/basics.tsx";
import { call, check, session } from "../shell/api.ts";
import { tell } from "../shell/toasts.tsx";
import { t, words } from "../words/words.ts";
import { Enrol } from "./other.tsx";

const w = words({
  title: ["Second factor", "第二因素"],
  password: ["Present password", "当前密码"],
  code: ["Code of the app, or a recovery code", "应用验证码或恢复代码"],
  begin: ["Set it up", "开始设置"],
  off: ["Turn it off", "关闭"],
  renew: ["Other recovery codes", "更换恢复代码"],
  codes: ["Recovery codes", "恢复代码"],
  isOff: ["The second factor is off; log in again.", "第二因素已关闭；请重新登录。"],
  isOn: ["The second factor is on; other sessions have ended.", "第二因素已开启；其他会话已结束。"],
});

export function SecondFactor({ onDone }: { onDone: () => void }) {
  const who = session.value;
  const [password, setPassword] = useState("");
  const [code, setCode] = useState("");
  const [isEnrolling, setEnrolling] = useState(false);
  const [codes, setCodes] = useState<string[] | null>(null);
  const [error, setError] = useState<unknown>();
  if (!who) return null;
  const finish = async (told: string) => {
    await check();
    tell(told);
    onDone();
  };
  if (isEnrolling) return <Enrol username={who.username} password={password} onDone={() => finish(t(w.isOn))} onClose={() => setEnrolling(false)} />;
  const asked = { username: who.username, password, code };
  const attempt = (work: () => Promise<void>) => () => {
    setError(undefined);
    work().catch(setError);
  };
  return (
    <form
      class="form"
      onSubmit={(event) => {
        event.preventDefault();
        if (!who.has_second_factor) setEnrolling(true);
      }}
    >
      <h3>{t(w.title)}</h3>
      <PasswordOf username={who.username} />
      <Field label={t(w.password)} type="password" autocomplete="current-password" required value={password} onInput={(event) => setPassword(event.currentTarget.value)} />
      {!!who.has_second_factor && <Field label={t(w.code)} autocomplete="one-time-code" required value={code} onInput={(event) => setCode(event.currentTarget.value.trim())} />}
      {codes && <Code text={codes.join("\n")} label={t(w.codes)} />}
      {error !== undefined && <Problem error={error} />}
      <footer>
        {who.has_second_factor ? (
          <>
            <button type="button" onClick={attempt(async () => setCodes((await call("renew_recovery_codes", asked)).recovery_codes))}>
              {t(w.renew)}
            </button>
            <button
              type="button"
              class="danger"
              onClick={attempt(async () => {
                await call("disable_second_factor", asked);
                await finish(t(w.isOff));
              })}
            >
              {t(w.off)}
            </button>
          </>
        ) : (
          <button class="primary">{t(w.begin)}</button>
        )}
      </footer>
    </form>
  );
}
