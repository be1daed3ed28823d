/** One search over everything: pages, terminals, objects. */
import { signal } from "@preact/signals";
import { useEffect, useId, useRef, useState } from "preact/hooks";
import { w as common } from "../words/common.ts";
import { t, words } from "../words/words.ts";
import { may, page } from "./api.ts";
import { useRested } from "./hooks.ts";
import { PAGES } from "./pages.ts";
import { go, link } from "./routes.ts";

const w = words({
  title: ["Find a terminal, object or page", "查找终端、对象或页面"],
  page: ["page", "页面"],
  hint: ["↑ ↓ to choose, Enter to open, Esc to close", "↑ ↓ 选择，Enter 打开，Esc 关闭"],
});

interface Found {
  name: string;
  more: string;
  kind: string;
  to: string;
}

const MOST = 6;
export const isSearching = signal(false);

function pagesNamed(text: string): Found[] {
  const small = text.toLowerCase();
  return PAGES.filter((each) => (!each.role || may(each.role)) && each.title.some((name) => name.toLowerCase().includes(small))).map(
    (each) => ({ name: t(each.title), more: "", kind: t(w.page), to: link([each.id]) }),
  );
}

async function ask(text: string, abort: AbortSignal): Promise<Found[]> {
  const like = `%${text}%`;
  const both = [["uid", "like", like], ["name", "like", like]];
  const [terminals, objects] = await Promise.all([
    page("get_terminal_list", { where_or: both, page_size: MOST }, abort),
    page("get_object_list", { where_or: both, page_size: MOST }, abort),
  ]);
  const hasObjects = PAGES.some((each) => each.id === "objects");
  return [
    ...terminals.rows.map((each) => ({ name: each.name, more: each.uid, kind: t(common.terminal), to: link(["terminals", each.uid]) })),
    ...(hasObjects ? objects.rows : []).map((each) => ({
      name: String(each["name"]),
      more: "",
      kind: t(common.object),
      to: link(["objects", String(each["id"])]),
    })),
  ];
}

export function Search() {
  const [text, setText] = useState("");
  const [found, setFound] = useState<Found[]>([]);
  const [chosen, setChosen] = useState(0);
  const rested = useRested(text.trim(), 120);
  const dialog = useRef<HTMLDialogElement>(null);
  const list = useId();
  useEffect(() => dialog.current?.showModal(), []);
  useEffect(() => {
    setChosen(0);
    setFound(pagesNamed(rested));
    if (!rested) return;
    const abort = new AbortController();
    ask(rested, abort.signal).then(
      (more) => setFound([...pagesNamed(rested), ...more]),
      () => undefined, // the pages stay, and the banner says that the platform is away
    );
    return () => abort.abort();
  }, [rested]);
  const close = () => (isSearching.value = false);
  const open = (each: Found | undefined) => {
    if (!each) return;
    close();
    go(each.to);
  };
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.key === "ArrowDown" || event.key === "ArrowUp") {
      event.preventDefault();
      const step = event.key === "ArrowDown" ? 1 : -1;
      setChosen((n) => (n + step + found.length) % Math.max(1, found.length));
    } else if (event.key === "Enter") open(found[chosen]);
  };
  return (
    <dialog ref={dialog} class="search" aria-label={t(w.title)} onCancel={close} onClick={(event) => event.target === dialog.current && close()}>
      <input
        role="combobox"
        aria-expanded="true"
        aria-controls={list}
        aria-activedescendant={found[chosen] ? `${list}-${chosen}` : undefined}
        aria-label={t(w.title)}
        placeholder={t(w.title)}
        maxLength={100}
        value={text}
        onInput={(event) => setText(event.currentTarget.value)}
        onKeyDown={onKeyDown}
      />
      <ul id={list} role="listbox" aria-label={t(common.search)}>
        {found.map((each, i) => (
          <li
            key={each.to}
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
