/** Small parts that every page is made of. */
import type { ComponentChildren, RefObject, TargetedEvent } from "preact";
import { useEffect, useId, useLayoutEffect, useRef, useState } from "preact/hooks";
import { clock } from "../shell/clock.ts";
import { pageTitle } from "../shell/title.ts";
import { w } from "../words/common.ts";
import { explain } from "../words/errors.ts";
import { t } from "../words/words.ts";

const DAY_MS = 86_400_000;

export type Meaning = "bad" | "warn" | "good" | "info" | "";

/** A word with a meaning; colour never says it alone. */
export function Tag({ kind = "", children }: { kind?: Meaning; children: ComponentChildren }) {
  return <span class={`tag ${kind}`}>{children}</span>;
}

/** Text of others: it can neither turn the line around nor take all room. */
export function Name({ text, mono = false }: { text: string; mono?: boolean }) {
  return (
    <bdi class={mono ? "mono" : undefined} title={text.length > 40 ? text.slice(0, 400) : undefined}>
      {text.length > 400 ? `${text.slice(0, 400)}…` : text}
    </bdi>
  );
}

/** How old something is, by the platform's clock; the time itself when pointed at. */
export function Age({ at }: { at: string | null | undefined }) {
  if (!at) return <span class="dim">{t(w.never)}</span>;
  const ms = clock.now.value - clock.parse(at);
  return (
    <time dateTime={at} title={`${at} ${clock.offset.value}`}>
      {Number.isNaN(ms) ? at : sinceText(ms)}
    </time>
  );
}

/** `3 min`; what lies in the future says so. */
export function sinceText(ms: number): string {
  const s = Math.floor(ms / 1000);
  if (s < -60) return t(w.inFuture);
  if (s < 60) return t(w.agoSeconds, { n: Math.max(0, s) });
  if (s < 3_600) return t(w.agoMinutes, { n: Math.floor(s / 60) });
  if (s < 172_800) return t(w.agoHours, { n: Math.floor(s / 3_600) });
  return t(w.agoDays, { n: Math.floor(s / 86_400) });
}

export function Card(props: { title?: string; more?: ComponentChildren; class?: string; children: ComponentChildren }) {
  const id = useId();
  return (
    <section class={`card ${props.class ?? ""}`} aria-labelledby={props.title ? id : undefined}>
      {props.title && (
        <header>
          <h2 id={id}>{props.title}</h2>
          {props.more}
        </header>
      )}
      {props.children}
    </section>
  );
}

/** The head of a page, which names the browser's tab too. */
export function Head(props: { title: string; name?: boolean; sub?: ComponentChildren; children?: ComponentChildren }) {
  useEffect(() => {
    pageTitle.value = props.title;
  }, [props.title]);
  return (
    <div class="head">
      <h1>{props.name ? <bdi>{props.title}</bdi> : props.title}</h1>
      <span class="sub">{props.sub}</span>
      {props.children && <div class="actions">{props.children}</div>}
    </div>
  );
}

/** What happened and what can be done. */
export function Problem({ error, retry }: { error: unknown; retry?: () => void }) {
  const told = explain(error);
  return (
    <div class="problem" role="alert">
      <strong>{told.what}</strong>
      <span>{told.todo}</span>
      {retry && (
        <span>
          <button class="small" onClick={retry}>
            {t(w.retry)}
          </button>
        </span>
      )}
    </div>
  );
}

/** What to do where there is nothing. */
export function Empty({ title, children }: { title: string; children?: ComponentChildren }) {
  return (
    <div class="empty">
      <strong>{title}</strong>
      {children}
    </div>
  );
}

interface InputProps {
  type?: "text" | "password" | "number" | "search" | "email" | "url";
  name?: string;
  value?: string;
  placeholder?: string;
  autocomplete?: "username" | "current-password" | "new-password" | "one-time-code" | "off";
  inputMode?: "numeric";
  required?: boolean;
  readOnly?: boolean;
  disabled?: boolean;
  autoFocus?: boolean;
  minLength?: number;
  maxLength?: number;
  min?: string;
  max?: string;
  step?: string;
  onInput?: (event: TargetedEvent<HTMLInputElement>) => void;
}

/** An input with its name above and what is wrong with it below. */
export function Field(props: { label: string; wrong?: string; children?: ComponentChildren; hint?: string } & InputProps) {
  const { label, wrong, children, hint, autoFocus, ...input } = props;
  const id = useId();
  const own = useRef<HTMLInputElement>(null);
  useLayoutEffect(() => {
    if (autoFocus) own.current?.focus(); // the attribute works only where nothing has the focus yet
  }, []);
  return (
    <label class="field">
      <span>{label}</span>
      {children ?? <input ref={own} data-focus={autoFocus || undefined} {...(input as object)} aria-invalid={wrong ? true : undefined} aria-describedby={wrong || hint ? id : undefined} />}
      {(wrong || hint) && (
        <span id={id} class={wrong ? "wrong" : "dim"}>
          {wrong || hint}
        </span>
      )}
    </label>
  );
}

/** Whose password a form is about, for password managers: nobody sees it. */
export function PasswordOf({ username }: { username: string }) {
  return <input class="hidden" hidden autocomplete="username" readOnly value={username} />;
}

/**
 * Opens a modal dialog; when it goes the focus is where it was, or at the beginning of the page where that is gone.
 * `onClosed`: the browser has closed it, which may refuse to be held back from that by the second Escape; without, it is opened again.
 */
export function useModal(onClosed?: () => void): RefObject<HTMLDialogElement | null> {
  const ref = useRef<HTMLDialogElement>(null);
  const latest = useRef(onClosed);
  latest.current = onClosed;
  useLayoutEffect(() => {
    const dialog = ref.current;
    const opener = document.activeElement as HTMLElement | null;
    const closed = (event: Event): void => {
      if (event.target === dialog) (latest.current ?? (() => dialog?.showModal()))();
    };
    dialog?.addEventListener("close", closed);
    dialog?.showModal();
    return () => {
      dialog?.removeEventListener("close", closed);
      dialog?.close(); // while it is open nothing else takes the focus
      (opener?.isConnected && opener !== document.body ? opener : document.getElementById("main"))?.focus({ preventScroll: true });
    };
  }, []);
  return ref;
}

/** A modal dialog; closing it by Escape is the same as by its button. */
export function Dialog(props: { title: string; onClose: () => void; class?: string; children: ComponentChildren; fixed?: boolean }) {
  const ref = useModal(props.fixed ? undefined : props.onClose);
  const id = useId();
  useLayoutEffect(() => ref.current?.querySelector<HTMLElement>("[data-focus]")?.focus(), []);
  return (
    <dialog
      ref={ref}
      class={props.class}
      aria-labelledby={id}
      onCancel={(event) => {
        if (event.target !== event.currentTarget) return; // of a choice of files that was given up, or made again
        event.preventDefault();
        if (!props.fixed) props.onClose();
      }}
    >
      <header>
        <h2 id={id}>{props.title}</h2>
        {!props.fixed && (
          <button class="plain" onClick={props.onClose} aria-label={t(w.close)}>
            {"✕"}
          </button>
        )}
      </header>
      {props.children}
    </dialog>
  );
}

/** Text to take away, with a button that copies it. */
export function Code({ text, label }: { text: string; label: string }) {
  const [copied, setCopied] = useState(false);
  const copy = async () => {
    await navigator.clipboard.writeText(text);
    setCopied(true);
    setTimeout(() => setCopied(false), 2_000);
  };
  return (
    <div class="code">
      <pre tabIndex={0} role="region" aria-label={label}>
        {text}
      </pre>
      {"clipboard" in navigator && (
        <button class="small" onClick={() => void copy()}>
          {copied ? t(w.copied) : t(w.copy)}
        </button>
      )}
    </div>
  );
}

/** A line over a row's last values. */
export function Spark({ values, label }: { values: readonly number[]; label: string }) {
  if (values.length < 2) return <svg class="spark" role="img" aria-label={label} />;
  const least = Math.min(...values);
  const span = Math.max(...values) - least || 1;
  const step = 100 / (values.length - 1);
  const points = values.map((value, i) => `${(i * step).toFixed(2)},${(34 - ((value - least) / span) * 32).toFixed(2)}`);
  return (
    <svg class="spark" viewBox="0 0 100 36" preserveAspectRatio="none" role="img" aria-label={label}>
      <path class="f" d={`M0,36 L${points.join(" L")} L100,36Z`} />
      <path class="l" d={`M${points.join(" L")}`} />
    </svg>
  );
}

/** Counts of the last days, today's last, by day with its year. */
export function dayBars(counted: { date: readonly string[]; data: Readonly<Record<string, number>> }): { key: string; value: number }[] {
  const today = clock.parse(`${clock.format(clock.now.value).slice(0, 10)} 12:00:00`); // noon: days of 23 hours count too
  const { date, data } = counted;
  return date.map((day, i) => ({ key: clock.format(today - (date.length - 1 - i) * DAY_MS).slice(0, 10), value: data[day] ?? 0 }));
}

/** `1.2k`: what fits above a column. */
function brief(value: number): string {
  return value < 1_000 ? String(value) : `${(value / 1_000).toPrecision(2)}k`;
}

/** Columns of days or hours; pointing at one says what it is. */
export function Bars({ label, bars, chosen, onChoose }: { label: string; bars: readonly { key: string; value: number }[]; chosen?: string; onChoose?: (key: string) => void }) {
  const most = Math.max(1, ...bars.map((each) => each.value));
  const box = useRef<HTMLDivElement>(null);
  useLayoutEffect(() => box.current?.scrollTo({ left: 1e6 }), []); // on a phone the newest are seen, older ones are to their left
  return (
    <div ref={box} class="columns" role="group" aria-label={label}>
      {bars.map((each) => (
        <button
          key={each.key}
          type="button"
          aria-pressed={chosen === each.key}
          title={`${each.key}: ${each.value.toLocaleString()}`}
          onClick={() => onChoose?.(chosen === each.key ? "" : each.key)}
        >
          <b>{each.value ? brief(each.value) : ""}</b>{" "}
          <svg viewBox="0 0 10 60" preserveAspectRatio="none" aria-hidden="true">
            <rect x={1} width={8} y={60 - (58 * each.value) / most} height={(58 * each.value) / most} />
          </svg>
          <span>{each.key.slice(5)}</span>
        </button>
      ))}
    </div>
  );
}

/** `8.4k`; three figures at most. */
export function short(value: number): string {
  if (value >= 1e9) return `${(value / 1e9).toPrecision(3)}G`;
  if (value >= 1e6) return `${(value / 1e6).toPrecision(3)}M`;
  if (value >= 10_000) return `${(value / 1e3).toPrecision(3)}k`;
  if (value >= 100) return Math.round(value).toLocaleString();
  return String(Math.round(value * 10) / 10);
}
