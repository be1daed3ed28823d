/** Other ways in: a code by mail for a new password, a second factor that a company asks for, back from single sign-on. */
import { useEffect, useState } from "preact/hooks";
import { Code, Field, PasswordOf, Problem } from "../parts/basics.tsx";
import { call, check, live } from "../shell/api.ts";
import { w as common } from "../words/common.ts";
import { t, words } from "../words/words.ts";
import { type OtherProps, TICKET } from "./page.tsx";

const w = words({
  forgot: ["A new password", "重设密码"],
  user: ["User name", "用户名"],
  send: ["Mail me a code", "发送验证码邮件"],
  mailed: [
    "If there is such a user with an e-mail, a code is on its way. It is good for a short time, and once.",
    "如果该用户存在且有电子邮件，验证码已发出。验证码仅短时间内有效，且只能使用一次。",
  ],
  have: ["I have a code", "我已有验证码"],
  code: ["Code of the mail", "邮件中的验证码"],
  fresh: ["New password (at least 8 characters)", "新密码（至少 8 个字符）"],
  take: ["Set the password", "设置密码"],
  taken: ["{name} has the new password; all sessions have ended.", "{name} 的密码已重设；所有会话已结束。"],
  back: ["To the login", "返回登录"],
  enrol: ["Your company asks for a second factor", "贵公司要求使用第二因素"],
  scan: [
    "Add this secret to an authenticator app (TOTP), then type the six digits that it shows.",
    "将此密钥添加到身份验证器应用（TOTP），然后输入其显示的六位数字。",
  ],
  secret: ["Secret", "密钥"],
  digits: ["Six digits of the app", "应用显示的六位数字"],
  confirm: ["Confirm", "确认"],
  recovery: ["Recovery codes", "恢复代码"],
  keep: [
    "Each stands in for the app once. They are shown now and never again: keep them where they are safe.",
    "每个代码可代替应用使用一次。仅显示这一次：请妥善保存。",
  ],
  kept: ["I have kept them", "我已保存"],
  coming: ["Single sign-on is being finished …", "正在完成单点登录…"],
});

export function OtherLogin({ other, onClose }: OtherProps) {
  if (other.kind === "back") return <Back onClose={onClose} />;
  if (other.kind === "reset") return <Reset first={other.code} onClose={onClose} />;
  return <Enrol username={other.username} password={other.password} onDone={enter} onClose={onClose} />;
}

async function enter(): Promise<void> {
  live.restart(); // as whoever this is now
  await check();
}

/** The address without what the provider or the mail added to it. */
function clean(): void {
  history.replaceState(null, "", location.pathname);
}

function Back({ onClose }: { onClose: () => void }) {
  const [error, setError] = useState<unknown>();
  useEffect(() => {
    const query = new URLSearchParams(location.search);
    const ticket = sessionStorage.getItem(TICKET) ?? "-";
    sessionStorage.removeItem(TICKET);
    clean();
    call("finish_single_sign_on", { state: query.get("state") ?? "-", code: query.get("code") ?? "-", ticket })
      .then(enter)
      .catch(setError);
  }, []);
  if (error === undefined) return <p class="dim">{t(w.coming)}</p>;
  return (
    <div class="form">
      <Problem error={error} />
      <button onClick={onClose}>{t(w.back)}</button>
    </div>
  );
}

function Reset({ first, onClose }: { first: string; onClose: () => void }) {
  const [hasCode, setHasCode] = useState(first !== "");
  const [username, setUsername] = useState("");
  const [code, setCode] = useState(first);
  const [password, setPassword] = useState("");
  const [told, setTold] = useState("");
  const [error, setError] = useState<unknown>();
  useEffect(() => {
    if (first) clean();
  }, []);
  const submit = async (event: Event) => {
    event.preventDefault();
    setError(undefined);
    try {
      if (hasCode) setTold(t(w.taken, { name: (await call("reset_password", { code, password })).username }));
      else {
        await call("request_password_reset", { username });
        setTold(t(w.mailed));
        setHasCode(true);
      }
    } catch (failure) {
      setError(failure);
    }
  };
  const isOver = hasCode && password !== "" && told !== "" && error === undefined && told !== t(w.mailed);
  return (
    <form class="form" onSubmit={(event) => void submit(event)}>
      <h2>{t(w.forgot)}</h2>
      {told && <p role="status">{told}</p>}
      {!isOver && !hasCode && <Field label={t(w.user)} name="username" autocomplete="username" required maxLength={64} value={username} onInput={(event) => setUsername(event.currentTarget.value)} />}
      {!isOver && hasCode && (
        <>
          <PasswordOf username={username} />
          <Field label={t(w.code)} autocomplete="one-time-code" required maxLength={128} value={code} onInput={(event) => setCode(event.currentTarget.value.trim())} />
          <Field label={t(w.fresh)} type="password" autocomplete="new-password" required minLength={8} maxLength={256} value={password} onInput={(event) => setPassword(event.currentTarget.value)} />
        </>
      )}
      {error !== undefined && <Problem error={error} />}
      {!isOver && <button class="primary">{t(hasCode ? w.take : w.send)}</button>}
      {!hasCode && (
        <button type="button" class="plain small" onClick={() => setHasCode(true)}>
          {t(w.have)}
        </button>
      )}
      <button type="button" class="plain small" onClick={onClose}>
        {t(w.back)}
      </button>
    </form>
  );
}

/** Puts a second factor in force: secret, six digits, recovery codes. */
export function Enrol({ username, password, onDone, onClose }: { username: string; password: string; onDone: () => Promise<void>; onClose: () => void }) {
  const [made, setMade] = useState<{ secret: string; uri: string } | null>(null);
  const [codes, setCodes] = useState<string[] | null>(null);
  const [code, setCode] = useState("");
  const [error, setError] = useState<unknown>();
  useEffect(() => {
    call("enrol_second_factor", { username, password }).then(setMade, setError);
  }, []);
  const submit = async (event: Event) => {
    event.preventDefault();
    setError(undefined);
    try {
      setCodes((await call("confirm_second_factor", { username, password, code: code.trim() })).recovery_codes);
    } catch (failure) {
      setError(failure);
    }
  };
  if (codes) {
    return (
      <div class="form">
        <h2>{t(w.recovery)}</h2>
        <p>{t(w.keep)}</p>
        <Code text={codes.join("\n")} label={t(w.recovery)} />
        <button class="primary" onClick={() => void onDone()}>
          {t(w.kept)}
        </button>
      </div>
    );
  }
  return (
    <form class="form" onSubmit={(event) => void submit(event)}>
      <h2>{t(w.enrol)}</h2>
      {made && (
        <>
          <p>{t(w.scan)}</p>
          <Code text={`${made.secret}\n${made.uri}`} label={t(w.secret)} />
          <Field label={t(w.digits)} name="code" autocomplete="one-time-code" inputMode="numeric" required maxLength={8} value={code} onInput={(event) => setCode(event.currentTarget.value)} />
        </>
      )}
      {error !== undefined && <Problem error={error} />}
      {made && <button class="primary">{t(w.confirm)}</button>}
      <button type="button" class="plain small" onClick={onClose}>
        {t(common.cancel)}
      </button>
    </form>
  );
}
