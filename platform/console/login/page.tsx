/** Logging in: the first page, and the dialog over any other where the session has ended. */
import type { ComponentChildren, ComponentType } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { GatewayError, type Result } from "terrazzo-client";
import { Field, Problem } from "../parts/basics.tsx";
import { call, isReachable, login, session } from "../shell/api.ts";
import { chooseLanguage, chooseTheme, shownTheme } from "../shell/preferences.ts";
import { language, t, words } from "../words/words.ts";

const w = words({
  user: ["User name", "用户名"],
  password: ["Password", "密码"],
  code: ["Code of the second factor", "第二因素验证码"],
  codeHint: ["From your app, or a recovery code", "来自您的应用，或恢复代码"],
  login: ["Log in", "登录"],
  wrong: ["User name or password is wrong, or the user is deactivated.", "用户名或密码错误，或用户已停用。"],
  wrongDo: ["Check both, or ask an administrator for another password.", "请检查两者，或向管理员申请新密码。"],
  dark: ["Dark", "深色"],
  light: ["Light", "浅色"],
  sso: ["Log in with single sign-on", "使用单点登录"],
  forgot: ["Forgot the password?", "忘记密码？"],
  away: ["The platform does not answer; it is tried again by itself.", "平台没有响应；系统会自动重试。"],
});

/** Where a login at the provider keeps its ticket until the browser is back. */
export const TICKET = "terrazzo-single-sign-on";

/** What else a login may be; loaded when somebody needs it. */
type Other = { kind: "reset"; code: string } | { kind: "enrol"; username: string; password: string } | { kind: "back" };
export interface OtherProps {
  other: Other;
  onClose: () => void;
}

/** What the address says of how one has come: from the provider, or from the mail with a code (`#code`). */
function arrival(): Other | null {
  const query = new URLSearchParams(location.search);
  if (query.has("state") && (query.has("code") || query.has("error"))) return { kind: "back" };
  const code = /^#([\w-]{16,128})$/.exec(location.hash)?.[1];
  return code ? { kind: "reset", code } : null;
}

export function Login({ isAgain = false }: { isAgain?: boolean }) {
  const [other, setOther] = useState<Other | null>(isAgain ? null : arrival());
  const [Shown, setShown] = useState<ComponentType<OtherProps> | null>(null);
  useEffect(() => {
    if (other) void import("./other.tsx").then((module) => setShown(() => module.OtherLogin));
  }, [other]);
  if (other) {
    const shown = Shown && <Shown other={other} onClose={() => setOther(null)} />;
    return isAgain ? shown : <Frame>{shown}</Frame>;
  }
  return <ByPassword isAgain={isAgain} onOther={setOther} />;
}

function Frame({ children }: { children: ComponentChildren }) {
  return (
    <main class="login">
      <section class="card">
        <h1>
          <img src={document.querySelector<HTMLLinkElement>('link[rel="icon"]')?.href} alt="" />
          {"Terrazzo"}
        </h1>
        {children}
        <Choices />
      </section>
    </main>
  );
}

/** What was typed in the form that the page came with, before this script was there. */
function typed(name: string): string {
  return session.value ? "" : (document.querySelector<HTMLInputElement>(`form input[name=${name}]`)?.value ?? "");
}

function ByPassword({ isAgain, onOther }: { isAgain: boolean; onOther: (other: Other) => void }) {
  const known = session.value?.username ?? "";
  const [username, setUsername] = useState(() => known || typed("username"));
  const [password, setPassword] = useState(() => typed("password"));
  const [code, setCode] = useState("");
  const [needsCode, setNeedsCode] = useState(false);
  const [error, setError] = useState<unknown>();
  const [isBusy, setBusy] = useState(false);
  const field = useRef<HTMLFormElement>(null);
  useEffect(() => {
    if (needsCode) field.current?.querySelector<HTMLInputElement>("input[name=code]")?.focus();
  }, [needsCode]);
  const submit = async (event: Event) => {
    event.preventDefault();
    setBusy(true);
    setError(undefined);
    try {
      await login(username, password, needsCode ? code : undefined);
    } catch (failure) {
      const needed = failure instanceof GatewayError ? (failure.result as { second_factor?: string } | null)?.second_factor : undefined;
      if (needed === "enrol") return onOther({ kind: "enrol", username, password });
      const isFirst = needed === "code" && !needsCode;
      if (needed === "code") setNeedsCode(true);
      setError(isFirst ? undefined : failure);
    } finally {
      setBusy(false);
    }
  };
  const form = (
    <form ref={field} class="form" onSubmit={(event) => void submit(event)}>
      <Field
        label={t(w.user)}
        name="username"
        autocomplete="username"
        required
        maxLength={64}
        value={username}
        readOnly={isAgain}
        autoFocus={!isAgain}
        onInput={(event) => setUsername(event.currentTarget.value)}
      />
      <Field
        label={t(w.password)}
        name="password"
        type="password"
        autocomplete="current-password"
        required
        maxLength={256}
        value={password}
        autoFocus={isAgain}
        onInput={(event) => setPassword(event.currentTarget.value)}
      />
      {needsCode && (
        <Field
          label={t(w.code)}
          hint={t(w.codeHint)}
          name="code"
          autocomplete="one-time-code"
          inputMode="numeric"
          maxLength={64}
          required
          value={code}
          onInput={(event) => setCode(event.currentTarget.value)}
        />
      )}
      <Failure error={error} />
      {!isReachable.value && !error && <div class="problem">{t(w.away)}</div>}
      <button class="primary" disabled={isBusy}>
        {t(w.login)}
      </button>
    </form>
  );
  if (isAgain) return form;
  return (
    <Frame>
      {form}
      <Ways onReset={() => onOther({ kind: "reset", code: "" })} />
    </Frame>
  );
}

/** What there is beside name and password, as the platform is configured. */
function Ways({ onReset }: { onReset: () => void }) {
  const [options, setOptions] = useState<Result<"get_login_options"> | null>(null);
  const [error, setError] = useState<unknown>();
  useEffect(() => {
    call("get_login_options", {}).then(setOptions, () => undefined); // who can't ask can't log in either, and is told so
  }, []);
  const go = async () => {
    try {
      const begun = await call("begin_single_sign_on", {});
      sessionStorage.setItem(TICKET, begun.ticket);
      location.assign(begun.url);
    } catch (failure) {
      setError(failure);
    }
  };
  if (!options?.single_sign_on && !options?.password_reset) return null;
  return (
    <div class="form ways">
      {error !== undefined && <Problem error={error} />}
      {options.single_sign_on && <button onClick={() => void go()}>{t(w.sso)}</button>}
      {options.password_reset && (
        <button class="plain small" onClick={onReset}>
          {t(w.forgot)}
        </button>
      )}
    </div>
  );
}

function Failure({ error }: { error: unknown }) {
  if (!error) return null;
  if (!(error instanceof GatewayError) || error.code !== 10402) return <Problem error={error} />;
  const isCode = (error.result as { second_factor?: string } | null)?.second_factor === "code" || error.reason?.code.startsWith("second_factor_");
  return (
    <div class="problem" role="alert">
      <strong>{isCode ? t(w.code) : t(w.wrong)}</strong>
      <span>{isCode ? t(w.codeHint) : t(w.wrongDo)}</span>
    </div>
  );
}

function Choices() {
  const isDark = shownTheme.value === "dark";
  return (
    <div class="foot">
      <button class="plain small" lang={language.value === "zh" ? "en" : "zh-CN"} onClick={() => chooseLanguage(language.value === "zh" ? "en" : "zh")}>
        {language.value === "zh" ? "English" : "中文"}
      </button>
      <button class="plain small" onClick={() => chooseTheme(isDark ? "light" : "dark")}>
        {t(isDark ? w.light : w.dark)}
      </button>
    </div>
  );
}
