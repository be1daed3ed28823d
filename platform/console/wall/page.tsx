/** A dashboard that a link shows and nothing else: no menu, no session; it turns its pages and heals itself for weeks. */
import { useEffect, useRef, useState } from "preact/hooks";
import { GatewayError, NOT_AUTHENTICATED } from "terrazzo-client";
import { readPages } from "../dashboards/record.ts";
import { PageView, useRotation } from "../dashboards/view.tsx";
import { wallNames } from "../dashboards/values.ts";
import { Empty, Name, Problem } from "../parts/basics.tsx";
import { call, enterWall, isLost, isOutdated, lookForUpgrade } from "../shell/api.ts";
import { WallFeed } from "../shell/wall-feed.ts";
import { clock } from "../shell/clock.ts";
import { useLoad } from "../shell/hooks.ts";
import { replaceQuery, route } from "../shell/routes.ts";
import { w as common } from "../words/common.ts";
import { t, words } from "../words/words.ts";

const w = words({
  ended: ["This link shows nothing any more", "此链接已失效"],
  endedDo: ["An administrator ended it, or the dashboard is gone. Ask for another link.", "管理员已将其终止，或仪表盘已被删除。请索取新的链接。"],
  lost: ["No connection: what is shown is old. It is tried again by itself.", "连接中断：显示的内容已过时。系统会自动重试。"],
  full: ["Full screen", "全屏"],
  rotate: ["Rotate pages", "轮换页面"],
  page: ["Page {n} of {total}", "第 {n} 页，共 {total} 页"],
});

const READ_MS = 60_000; // an edited dashboard comes to the walls that show it
const FRESH_MS = 24 * 3_600_000; // a browser that has been open for so long begins anew

export function WallPage() {
  const { query } = route.value;
  const key = query.get("key") ?? "";
  const [isReady, setReady] = useState(false);
  useEffect(() => {
    enterWall(key, (gateway, onTry) => new WallFeed(gateway, { onTry, isIdle: () => document.hidden }));
    setReady(true);
  }, [key]);
  return (
    <main id="main" class="wall-page" aria-busy="false" data-route={location.hash}>
      {isReady && <Shown key={key} />}
    </main>
  );
}

function Shown() {
  const box = useRef<HTMLDivElement>(null);
  const found = useLoad((abort) => readWall(abort), [], READ_MS);
  useFreshness();
  const { query } = route.value;
  const pages = found.data ? readPages(found.data.script) : [];
  const index = Math.max(0, pages.findIndex((each) => each.key === query.get("page")));
  const shown = pages[index];
  const isRotating = query.has("rotate");
  useRotation(pages, shown?.key ?? "", isRotating);
  useEffect(() => {
    if (found.data) document.title = `${found.data.name.slice(0, 80)} · Terrazzo`;
  }, [found.data?.name]);
  if (found.error instanceof GatewayError && found.error.code === NOT_AUTHENTICATED) return <Empty title={t(w.ended)}>{t(w.endedDo)}</Empty>;
  if (!found.data) return found.error !== undefined ? <Problem error={found.error} retry={found.reload} /> : <p class="dim">{t(common.loading)}</p>;
  return (
    <div ref={box} class="dashboard wall">
      <header>
        <h1>
          <Name text={shown && pages.length > 1 ? `${found.data.name} · ${shown.name}` : found.data.name} />
        </h1>
        {isLost.value ? <strong class="bad" role="alert">{t(w.lost)}</strong> : <time>{clock.format(clock.now.value)}</time>}
        <span class="wall-tools">
          {pages.length > 1 && <span class="dim">{t(w.page, { n: index + 1, total: pages.length })}</span>}
          {pages.length > 1 && (
            <button class="plain small" aria-pressed={isRotating} onClick={() => replaceQuery({ rotate: isRotating ? undefined : "1" })}>
              {t(w.rotate)}
            </button>
          )}
          <button class="plain small" onClick={() => void box.current?.requestFullscreen()}>
            {t(w.full)}
          </button>
        </span>
      </header>
      {shown && <PageView key={shown.key} page={shown} object={found.data.object_id ?? ""} />}
    </div>
  );
}

async function readWall(abort: AbortSignal) {
  const found = await call("get_wall", {}, abort);
  clock.set(found.now_us / 1_000, found.zone);
  wallNames.value = new Map(Object.entries(found.objects));
  return found;
}

/** Begins anew where the platform has another console, and once a day: nothing that leaks a little is open for weeks. */
function useFreshness(): void {
  useEffect(() => {
    const began = Date.now();
    const timer = setInterval(() => {
      if (document.hidden) return;
      void lookForUpgrade().then(() => {
        const isOld = Date.now() - began > FRESH_MS;
        if ((isOutdated.value || isOld) && !isLost.value) location.reload();
      });
    }, READ_MS);
    return () => clearInterval(timer);
  }, []);
}
