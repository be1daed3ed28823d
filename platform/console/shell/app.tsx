/** The frame around each page: menu, search, connection, account; and what is shown instead while nobody is logged in. */
import type { ComponentType } from "preact";
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import { Login } from "../login/page.tsx";
import { Dialog, Head, Problem } from "../parts/basics.tsx";
import { w as common } from "../words/common.ts";
import { t, words } from "../words/words.ts";
import { hasExpired, isLost, isOutdated, liveState, may, session } from "./api.ts";
import { beBusy } from "./busy.ts";
import { clock } from "./clock.ts";
import { loadLaterStyle } from "./later-style.ts";
import { PAGES } from "./pages.ts";
import { isAccountOpen } from "./preferences.ts";
import { HOME, link, route } from "./routes.ts";
import { isSearching, Search } from "./search.tsx";
import { needed } from "./title.ts";
import { close, show, Toasts } from "./toasts.tsx";

const w = words({
  skip: ["To the content", "跳到内容"],
  menu: ["Main menu", "主菜单"],
  more: ["More", "更多"],
  find: ["Find anything by its name", "按名称查找任何内容"],
  live: ["live", "实时"],
  lost: ["no connection", "连接中断"],
  lostLong: [
    "The connection to the platform is lost. It is tried again by itself; what is shown may be old.",
    "与平台的连接已中断。系统会自动重试；显示的内容可能已过时。",
  ],
  outdated: ["The platform was upgraded. Reload to go on with its new console; what you typed stays.", "平台已升级。请刷新以使用新的控制台；您输入的内容会保留。"],
  again: ["Log in again", "重新登录"],
  againLong: ["Your session has ended. Nothing that you typed is lost.", "您的会话已结束。您输入的内容不会丢失。"],
  unknownPage: ["There is no such page", "没有此页面"],
  home: ["To the overview", "前往概览"],
  account: ["Account: {name}", "账户：{name}"],
});

const NAME = "Terrazzo";
const WALL = "wall";
const AGAIN_MS = 10_000;

export function App() {
  const who = session.value;
  if (route.value.page === WALL) return <Wall />;
  if (who === undefined) return <Start />;
  if (who === null) return <Login />;
  return (
    <div class="shell">
      <a class="skip" href="#main" onClick={skip}>
        {t(w.skip)}
      </a>
      <Top />
      <Menu />
      <main id="main" tabIndex={-1} aria-busy="false">
        <Banners />
        <PageOfRoute />
      </main>
      <Toasts />
      <Watching />
      {isSearching.value && <Search />}
      {isAccountOpen.value && <LaterAccount />}
      {hasExpired.value && (
        <Dialog title={t(w.again)} fixed onClose={() => undefined}>
          <p class="dim">{t(w.againLong)}</p>
          <Login isAgain />
        </Dialog>
      )}
    </div>
  );
}

/** Follows what needs a person; loaded after the page. */
function Watching() {
  const [Loaded, setLoaded] = useState<ComponentType | null>(null);
  useEffect(() => void import("../overview/watch.tsx").then((module) => setLoaded(() => module.Watch), () => undefined), []);
  return Loaded && <Loaded />;
}

/** One's account, loaded when it is first opened. */
function LaterAccount() {
  const [Loaded, setLoaded] = useState<ComponentType | null>(null);
  useEffect(() => void import("../login/account.tsx").then((module) => setLoaded(() => module.Account), () => (isAccountOpen.value = false)), []);
  return Loaded && <Loaded />;
}

/** What a wall's link shows; its page is loaded there alone. */
function Wall() {
  const [Loaded, setLoaded] = useState<ComponentType | null>(null);
  useEffect(() => {
    Promise.all([import("../wall/page.tsx"), loadLaterStyle()]).then(([module]) => setLoaded(() => module.WallPage), () => setTimeout(() => location.reload(), AGAIN_MS));
  }, []);
  return Loaded ? <Loaded /> : <Start />;
}

function Start() {
  return <div class="login">{isLost.value && <div class="banner bad">{t(w.lostLong)}</div>}</div>;
}

function skip(event: Event): void {
  event.preventDefault();
  document.getElementById("main")?.focus();
}

function Top() {
  const isAway = isLost.value;
  const name = session.value?.username ?? "";
  return (
    <header class="top">
      <a class="brand" href={link([HOME])} aria-label={NAME}>
        <img src={iconUrl()} alt="" />
        <span>{"Terrazzo"}</span>
      </a>
      <button class="find" onClick={() => (isSearching.value = true)}>
        <span class="cut">{t(w.find)}</span> <kbd>{"Ctrl K"}</kbd>
      </button>
      <div class="right">
        <span class={`live ${isAway ? "lost" : liveState.value === "open" ? "" : "idle"}`} role="status">
          <i class={`dot ${isAway ? "bad" : liveState.value === "open" ? "" : "off"}`} />
          <span class={isAway ? undefined : "wide"}>{isAway ? t(w.lost) : liveState.value === "open" ? t(w.live) : ""}</span>
        </span>
        <span class="dim wide">{`${clock.zone.value} ${clock.zone.value === clock.offset.value ? "" : clock.offset.value}`}</span>
        <button class="plain" onClick={() => (isAccountOpen.value = true)} aria-label={t(w.account, { name })}>
          <bdi class="cut">{name.slice(0, 24)}</bdi>
        </button>
      </div>
    </header>
  );
}

function iconUrl(): string {
  return document.querySelector<HTMLLinkElement>('link[rel="icon"]')?.href ?? "";
}

function Menu() {
  const [isOpen, setOpen] = useState(false);
  const shown = route.value.page;
  useEffect(() => setOpen(false), [shown]);
  return (
    <nav class={`side ${isOpen ? "open" : ""}`} aria-label={t(w.menu)}>
      {PAGES.filter((each) => !each.role || may(each.role)).map((each) => {
        const count = each.id === HOME ? needed.value : null;
        return (
          <>
            {each.group && <div class="group" />}
            <a key={each.id} class={each.first ? "first" : ""} href={link([each.id])} aria-current={each.id === shown ? "page" : undefined}>
              {t(each.title)}
              {!!count && <span class="count">{count.toLocaleString()}</span>}
            </a>
          </>
        );
      })}
      {PAGES.some((each) => !each.first) && (
        <button class={`plain more ${PAGES.some((each) => each.id === shown && !each.first) ? "here" : ""}`} aria-expanded={isOpen} onClick={() => setOpen(!isOpen)}>
          {t(w.more)}
        </button>
      )}
    </nav>
  );
}

function Banners() {
  const isAway = isLost.value;
  const lostAt = useRef("");
  useEffect(() => {
    const since = lostAt.current;
    lostAt.current = isAway ? clock.ago(0) : "";
    if (since) import("./missing.ts").then((module) => module.tellMissing(since, { t, clock, show, close }), () => undefined);
  }, [isAway]);
  return (
    <>
      {isAway && (
        <div class="banner bad" role="alert">
          {t(w.lostLong)}
        </div>
      )}
      {isOutdated.value && (
        <div class="banner" role="status">
          {t(w.outdated)}
          <button onClick={() => location.reload()}>{t(common.reload)}</button>
        </div>
      )}
    </>
  );
}

const loaded = new Map<string, ComponentType>();

function PageOfRoute() {
  const id = route.value.page;
  const entry = PAGES.find((each) => each.id === id && (!each.role || may(each.role)));
  const [, setTurn] = useState(0);
  const [error, setError] = useState<unknown>();
  const last = useRef(id);
  const isAwaited = entry !== undefined && !loaded.has(id) && error === undefined;
  useLayoutEffect(() => (isAwaited ? beBusy() : undefined), [isAwaited]);
  useLayoutEffect(() => document.getElementById("main")?.setAttribute("data-route", location.hash), [route.value]);
  useEffect(() => document.querySelector("main .tabs [aria-current]")?.scrollIntoView({ block: "nearest", inline: "center" })); // on a phone tabs are broader than the screen
  useEffect(() => {
    setError(undefined);
    if (last.current !== id) document.getElementById("main")?.focus({ preventScroll: true });
    last.current = id;
    if (!entry || loaded.has(id)) return;
    Promise.all([entry.load(), id === HOME ? undefined : loadLaterStyle()]).then(
      ([module]) => {
        loaded.set(id, module.Page);
        setTurn((n) => n + 1);
      },
      (failure: unknown) => setError(failure),
    );
  }, [id, entry]);
  if (!entry) {
    return (
      <>
        <Head title={t(w.unknownPage)} />
        <a href={link([HOME])}>{t(w.home)}</a>
      </>
    );
  }
  if (error) return <Problem error={error} retry={() => location.reload()} />;
  const Page = loaded.get(id);
  return Page ? <Page key={id} /> : <p class="dim">{t(common.loading)}</p>;
}
