/** One search over everything: pages, and whatever has a name. */
import { signal } from "@preact/signals";
import { useEffect, useId, useRef, useState } from "preact/hooks";
import { useModal } from "../parts/basics.tsx";
import { w as common } from "../words/common.ts";
import { t, words } from "../words/words.ts";
import { call, logout, may } from "./api.ts";
import { useRested } from "./hooks.ts";
import { PAGES, titles } from "./pages.ts";
import type { Shell } from "./places.ts";
import { chooseLanguage, chooseTheme, isAccountOpen } from "./preferences.ts";
import { go, link } from "./routes.ts";

const w = words({
  title: ["Find anything by its name", "按名称查找任何内容"],
  page: ["page", "页面"],
  part: ["part of a page", "页面部分"],
  action: ["action", "操作"],
  hint: ["↑ ↓ to choose, Enter to open, Esc to close", "↑ ↓ 选择，Enter 打开，Esc 关闭"],
});

interface Found {
  name: string;
  more: string;
  kind: string;
  key: string;
  open: () => void;
}

const MOST = 20;
export const isSearching = signal(false);

function pagesNamed(text: string): Found[] {
  const small = text.toLowerCase();
  return PAGES.filter((each) => (!each.role || may(each.role)) && each.title.some((name) => name.toLowerCase().includes(small))).map(
    (each) => ({ name: t(each.title), more: "", kind: t(w.page), key: each.id, open: () => go(link([each.id])) }),
  );
}

/** Parts of pages, and what one can begin; none before somebody types, or where they can't be loaded. */
const SHELL: Shell = {
  titles,
  open: (path, query) => go(link(path, query)),
  account: () => (isAccountOpen.value = true),
  theme: chooseTheme,
  language: chooseLanguage,
  logout: () => void logout(),
};

async function placesNamed(text: string): Promise<Found[]> {
  const small = text.toLowerCase();
  const { placesOf } = await import("./places.ts");
  return placesOf(SHELL).filter((each) => (!each.role || may(each.role)) && each.title.some((name) => name.toLowerCase().includes(small))).map((each) => ({
    name: t(each.title),
    more: t(each.of),
    kind: t(each.isAction ? w.action : w.part),
    key: `${each.title[0]} ${each.of[0]}`,
    open: each.open,
  }));
}

async function ask(text: string, abort: AbortSignal): Promise<Found[]> {
  const pages = new Set(PAGES.filter((each) => !each.role || may(each.role)).map((each) => each.id));
  const { kindsShown, kindWord, placeOf } = await import("./found.ts");
  const hits = await call("search", { text: text.slice(0, 64), kinds: kindsShown(pages), limit: MOST }, abort);
  return hits.flatMap((hit) => {
    const to = placeOf(hit, pages);
    return to ? [{ name: hit.name || hit.uid, more: hit.text || (hit.uid === hit.name ? "" : hit.uid), kind: t(kindWord(hit.kind)), key: to, open: () => go(to) }] : [];
  });
}

export function Search() {
  const [text, setText] = useState("");
  const [found, setFound] = useState<Found[]>([]);
  const [chosen, setChosen] = useState(0);
  const [answered, setAnswered] = useState(""); // the text that all that is found is of
  const isWanted = useRef(false); // the first that is found, by who pressed Enter before it was
  const rested = useRested(text.trim(), 120);
  const close = () => (isSearching.value = false);
  const dialog = useModal(close); // before the next key comes
  const list = useId();
  useEffect(() => {
    setChosen(0);
    setFound(pagesNamed(rested));
    if (!rested) {
      setAnswered("");
      return;
    }
    const abort = new AbortController();
    const places = placesNamed(rested).catch(() => []); // of a platform that is away
    const show = (more: Found[]) => {
      if (abort.signal.aborted) return;
      const all = [...pagesNamed(rested), ...more];
      setFound(all);
      if (isWanted.current) open(all[0]);
    };
    void places.then(show);
    Promise.all([places, ask(rested, abort.signal)])
      .then(
        ([near, far]) => show([...near, ...far]),
        () => undefined, // the pages stay, and the banner says that the platform is away
      )
      .finally(() => !abort.signal.aborted && setAnswered(rested));
    return () => abort.abort();
  }, [rested]);
  const onCancel = (event: Event) => {
    event.preventDefault(); // else it would be closed before it is gone
    close();
  };
  const open = (each: Found | undefined) => {
    if (!each) return;
    close();
    each.open();
  };
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.key === "ArrowDown" || event.key === "ArrowUp") {
      event.preventDefault();
      const step = event.key === "ArrowDown" ? 1 : -1;
      setChosen((n) => (n + step + found.length) % Math.max(1, found.length));
    } else if (event.key === "Enter") {
      event.preventDefault(); // else it would press what has the focus in a dialog that opens
      if (text.trim() === rested && found.length) open(found[chosen]);
      else isWanted.current = true;
    }
  };
  return (
    <dialog ref={dialog} class="search" aria-label={t(w.title)} onCancel={onCancel} onClick={(event) => event.target === dialog.current && close()}>
      <input
        role="combobox"
        aria-expanded="true"
        aria-controls={list}
        aria-activedescendant={found[chosen] ? `${list}-${chosen}` : undefined}
        aria-label={t(w.title)}
        placeholder={t(w.title)}
        maxLength={100}
        value={text}
        onInput={(event) => {
          isWanted.current = false;
          setText(event.currentTarget.value);
        }}
        onKeyDown={onKeyDown}
      />
      <ul id={list} role="listbox" aria-busy={answered !== text.trim()} aria-label={t(common.search)}>
        {found.map((each, i) => (
          <li
            key={each.key}
            id={`${list}-${i}`}
            role="option"
            aria-selected={i === chosen}
            onClick={() => open(each)}
            onMouseMove={() => setChosen(i)}
          >
            <bdi class="cut">{each.name}</bdi>
            <bdi class="cut dim mono">{each.more}</bdi>
            <span class="kind">{each.kind}</span>
          </li>
        ))}
      </ul>
      {rested && !found.length && <div class="empty">{t(common.nothing)}</div>}
      <div class="hint">{t(w.hint)}</div>
    </dialog>
  );
}

/** Ctrl K or Cmd K anywhere, `/` where nobody types. */
export function followSearchKeys(): void {
  addEventListener("keydown", (event) => {
    const isTyping = event.target instanceof HTMLElement && /^(INPUT|TEXTAREA|SELECT)$/.test(event.target.tagName);
    const isAsked = (event.key.toLowerCase() === "k" && (event.ctrlKey || event.metaKey)) || (event.key === "/" && !isTyping);
    if (!isAsked || document.querySelector("dialog[open]")) return;
    event.preventDefault();
    isSearching.value = true;
  });
}
