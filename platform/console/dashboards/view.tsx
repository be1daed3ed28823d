/** One dashboard to look at: its pages, live; as a wall it fills the screen, rotates and heals itself. */
import { useEffect, useRef, useState } from "preact/hooks";
import { Empty, Head, Name, Problem } from "../parts/basics.tsx";
import { call, may } from "../shell/api.ts";
import { useAsked, useLoad } from "../shell/hooks.ts";
import { link, replaceQuery, route } from "../shell/routes.ts";
import { w as common } from "../words/common.ts";
import { t } from "../words/words.ts";
import { inReadingOrder, rowsOf } from "./layout.ts";
import { readPages, type DashboardPage, type Place } from "./record.ts";
import { Picture } from "./picture.tsx";
import { usePageValues } from "./values.ts";
import { WidgetBody } from "./widgets.tsx";
import { WallLinkDialog } from "./wall-link.tsx";
import { w } from "./words.ts";

const READ_MS = 60_000; // an edited dashboard comes to the walls that show it
const TURN_MS = 30_000;

export function View({ uid }: { uid: string }) {
  const found = useLoad((abort) => call("get_dashboard_item", { uid }, abort), [uid], READ_MS);
  const box = useRef<HTMLDivElement>(null);
  const [isWall, setWall] = useState(false);
  const [isLinking, setLinking] = useState(false);
  useAsked("link", () => setLinking(may("admin")));
  useEffect(() => {
    const follow = (): void => setWall(document.fullscreenElement !== null);
    document.addEventListener("fullscreenchange", follow);
    return () => document.removeEventListener("fullscreenchange", follow);
  }, []);
  const object = route.value.query.get("object") ?? "";
  const shownFor = useLoad((abort) => (object ? call("get_object_item", { id: object }, abort) : Promise.resolve(null)), [object]);
  const pages = found.data ? readPages(found.data.script) : [];
  const key = route.value.query.get("page") ?? "";
  const shown = pages.find((each) => each.key === key) ?? pages[0];
  const isRotating = route.value.query.has("rotate");
  useRotation(pages, shown?.key ?? "", isRotating);
  if (!found.data) return found.error !== undefined ? <Problem error={found.error} retry={found.reload} /> : <p class="dim">{t(common.loading)}</p>;
  return (
    <>
      <Head title={found.data.name} name sub={object && <a href={link(["objects", object])}>{t(w.forObject, { name: shownFor.data?.name ?? object })}</a>}>
        <a class="button" href={link(["dashboards"])}>
          {t(w.back)}
        </a>
        <button onClick={() => void box.current?.requestFullscreen()}>{t(w.wall)}</button>
        {may("admin") && <button onClick={() => setLinking(true)}>{t(w.wallLink)}</button>}
        {may("admin") && (
          <a class="button" href={link(["dashboards", uid], { edit: "1", page: shown?.key })}>
            {t(common.edit)}
          </a>
        )}
      </Head>
      {isLinking && <WallLinkDialog uid={uid} object={object} onClose={() => setLinking(false)} />}
      <div ref={box} class={`dashboard ${isWall ? "wall" : ""}`}>
        {pages.length > 1 && <Tabs pages={pages} shown={shown?.key ?? ""} isRotating={isRotating} />}
        {shown && <PageView key={shown.key} page={shown} object={object} />}
      </div>
    </>
  );
}

/** Shows page after page; one that is alone stays. */
export function useRotation(pages: DashboardPage[], shown: string, isRotating: boolean): void {
  const keys = pages.map((each) => each.key).join("\n");
  useEffect(() => {
    if (!isRotating || pages.length < 2) return;
    const timer = setTimeout(() => {
      const next = pages[(pages.findIndex((each) => each.key === shown) + 1) % pages.length];
      if (next) replaceQuery({ page: next.key });
    }, TURN_MS);
    return () => clearTimeout(timer);
  }, [keys, shown, isRotating]);
}

function Tabs({ pages, shown, isRotating }: { pages: DashboardPage[]; shown: string; isRotating: boolean }) {
  return (
    <nav class="tabs" aria-label={t(w.pages)}>
      {pages.map((each) => (
        <a
          key={each.key}
          href={link([route.value.page, ...route.value.path], { ...Object.fromEntries(route.value.query), page: each.key })}
          aria-current={each.key === shown ? "page" : undefined}
        >
          <Name text={each.name} />
        </a>
      ))}
      <button class="plain small" aria-pressed={isRotating} onClick={() => replaceQuery({ rotate: isRotating ? undefined : "1" })}>
        {t(w.rotate)}
      </button>
    </nav>
  );
}

/** Where a widget stands in its page's grid. */
export function gridPlace({ left, top, width, height }: Place): Record<string, string> {
  return { gridColumn: `${left + 1} / span ${width}`, gridRow: `${top + 1} / span ${height}` };
}

/** How many columns and rows a page's grid has. */
export function gridSize(page: DashboardPage): Record<string, string> {
  return { gridTemplateColumns: `repeat(${page.columns}, minmax(0, 1fr))`, gridTemplateRows: `repeat(${rowsOf(page)}, minmax(44px, 1fr))` };
}

/** The widgets of a page, for an object or (empty) for its own. */
export function PageView({ page, object }: { page: DashboardPage; object: string }) {
  const values = usePageValues(page, object);
  if (!page.widgets.length) return <Empty title={t(w.emptyPage)}>{may("admin") && t(w.emptyPageDo)}</Empty>;
  return (
    <>
      {values.error !== undefined && <Problem error={values.error} />}
      <div class={`dash-grid ${page.picture ? "plan" : ""}`} style={gridSize(page)}>
        {page.picture && <Picture uid={page.picture} />}
        {inReadingOrder(page.widgets).map((each) => (
          <section key={each.index} class="card widget" style={gridPlace(each.place)} role="group" aria-label={each.name.slice(0, 200)}>
            <h2>
              <Name text={each.name} />
            </h2>
            <WidgetBody widget={each} values={values} />
          </section>
        ))}
      </div>
    </>
  );
}
