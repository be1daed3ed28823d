/** Objects on a map, by their `gis`: coasts that come with the console, and pictures where the configuration names a server of them. */
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import fine from "world-atlas/land-50m.json";
import coarse from "world-atlas/land-110m.json";
import { Card, Empty, Name, Problem } from "../parts/basics.tsx";
import { page, session } from "../shell/api.ts";
import { useBusy, useLive, useLoad, useRested } from "../shell/hooks.ts";
import { shownTheme } from "../shell/preferences.ts";
import { link, replaceQuery, route } from "../shell/routes.ts";
import { w as common } from "../words/common.ts";
import { t } from "../words/words.ts";
import { fit, markersOf, moved, parseGis, type Point, project, readView, type Ring, ringsOf, scaleBar, tilesOf, writeView, zoomed, type MapView, type Marker } from "./geography.ts";
import { Flags, type ObjectRow } from "./list.tsx";
import { w } from "./words.ts";

const MOST = 5_000; // objects on a map
const PAGE = 1_000;
const READ_MS = 300_000;
const APART = 26;
const FINE_FROM = 4_096; // pixels of the world from which on the finer coasts are worth their weight
const STEP = 80;
const CLOSEST = 256 * 2 ** 17; // some metres a pixel
const BAR_PX = 120;
const LISTED = 50;
const REST_MS = 300; // of a view before the address has it: browsers bear few changes a second

interface Placed {
  point: Point;
  what: ObjectRow;
}

type Conditions = Readonly<Record<string, unknown>>;

export function ObjectMap({ conditions }: { conditions: Conditions }) {
  const found = useLoad((abort) => readAll(conditions, abort), [JSON.stringify(conditions)], READ_MS);
  const [changed, setChanged] = useState<Readonly<Record<number, Partial<ObjectRow>>>>({});
  useLive({ kinds: ["object"] }, ({ data }) => setChanged((before) => ({ ...before, [Number(data["object_id"])]: data as Partial<ObjectRow> })), found.reload);
  const rows = found.data?.rows;
  const placed = useMemo(() => (rows ?? []).flatMap((row) => placedAt({ ...row, ...flagsOf(changed[row.id]) })), [rows, changed]);
  if (!rows) return found.error !== undefined ? <Problem error={found.error} retry={found.reload} /> : <p class="dim">{t(common.loading)}</p>;
  if (!placed.length) return <Empty title={t(w.mapNone)}>{t(w.mapNoneDo)}</Empty>;
  const without = rows.length - placed.length;
  return (
    <>
      <World placed={placed} />
      <p class="dim">
        {t(w.mapCount, { n: placed.length })}
        {without > 0 && ` · ${t(w.mapWithout, { n: without })}`}
        {(found.data?.total ?? 0) > rows.length && ` · ${t(w.mapCut, { n: MOST })}`}
        {` · ${t(w.mapPlans)} `}
        <a href={link(["dashboards"])}>{t(w.mapPlansTo)}</a>
      </p>
    </>
  );
}

function flagsOf(frame: Partial<ObjectRow> | undefined): Partial<ObjectRow> {
  if (!frame) return {};
  const { is_online, is_boot, is_retainer } = frame;
  return Object.fromEntries(Object.entries({ is_online, is_boot, is_retainer }).filter(([, value]) => value !== undefined));
}

function placedAt(what: ObjectRow): Placed[] {
  const place = parseGis(what.gis);
  return place ? [{ point: project(place), what }] : [];
}

async function readAll(conditions: Conditions, abort: AbortSignal): Promise<{ rows: ObjectRow[]; total: number }> {
  const rows: ObjectRow[] = [];
  for (let index = 1; ; index++) {
    const read = await page("get_object_list", { ...conditions, page_index: index, page_size: PAGE }, abort);
    rows.push(...read.rows);
    if (rows.length >= Math.min(read.total, MOST) || !read.rows.length) return { rows, total: read.total };
  }
}

function useCoasts(isFine: boolean): readonly Ring[] {
  const [rings, setRings] = useState<readonly Ring[]>([]);
  const [isAwaited, setAwaited] = useState(true);
  useBusy(isAwaited);
  const kept = useRef(new Map<string, Ring[]>());
  useEffect(() => {
    const name = isFine ? fine : coarse;
    const known = kept.current.get(name);
    if (known) return setRings(known);
    const abort = new AbortController();
    fetch(new URL(name, import.meta.url), { signal: abort.signal })
      .then((answer) => answer.json())
      .then((topology) => {
        const made = ringsOf(topology as Parameters<typeof ringsOf>[0]);
        kept.current.set(name, made);
        setRings(made);
      })
      .catch(() => undefined) // markers are there without coasts too
      .finally(() => setAwaited(false));
    return () => abort.abort();
  }, [isFine]);
  return rings;
}

function World({ placed }: { placed: readonly Placed[] }) {
  const box = useRef<HTMLDivElement>(null);
  const [size, setSize] = useState({ width: 0, height: 0 });
  const [view, setView] = useState<MapView | null>(() => readView(route.value.query.get("at") ?? ""));
  const rested = useRested(view, REST_MS);
  const [chosen, setChosen] = useState<readonly number[]>([]);
  useLayoutEffect(() => {
    const element = box.current;
    if (!element) return;
    const look = (): void => setSize({ width: element.clientWidth, height: element.clientHeight });
    look();
    const observer = new ResizeObserver(look);
    observer.observe(element);
    return () => observer.disconnect();
  }, []);
  useEffect(() => {
    const at = rested ? writeView(rested) : "";
    if (at !== (route.value.query.get("at") ?? "")) replaceQuery({ at });
  }, [rested]);
  const { width, height } = size;
  const whole = (): MapView => fit(placed.map((each) => each.point), width, height);
  const shown = view ?? whole();
  const rings = useCoasts(shown.size >= FINE_FROM);
  const change = (make: (before: MapView) => MapView): void => setView((before) => make(before ?? whole()));
  const open = (marker: Marker<ObjectRow>): void => {
    setChosen(marker.members.map((each) => each.id));
    const ids = new Set(marker.members.map((each) => each.id));
    const points = placed.filter((each) => ids.has(each.what.id)).map((each) => each.point);
    if (points.length > 1) setView(fit(points, width, height, CLOSEST));
  };
  const listed = placed.filter((each) => chosen.includes(each.what.id)).map((each) => each.what);
  return (
    <>
      <div class="map" ref={box} role="group" aria-label={t(w.map)} tabIndex={0} onKeyDown={(event) => onKey(event, change)} {...usePointers(box, change)}>
        {width > 0 && <Coasts rings={rings} view={shown} width={width} height={height} />}
        {width > 0 && <Tiles view={shown} width={width} height={height} />}
        {width > 0 && markersOf(placed, shown, width, height, APART).map((each) => <Mark key={each.members[0]?.id} marker={each} onOpen={open} />)}
        {width > 0 && <ScaleBar view={shown} />}
        <div class="map-tools">
          <button class="small" aria-label={t(w.closer)} onClick={() => change((before) => zoomed(before, 2))}>
            {"+"}
          </button>
          <button class="small" aria-label={t(w.farther)} onClick={() => change((before) => zoomed(before, 0.5))}>
            {"−"}
          </button>
          <button class="small" onClick={() => setView(null)}>
            {t(common.all)}
          </button>
        </div>
      </div>
      {listed.length > 0 && <Listed rows={listed} />}
    </>
  );
}

function ScaleBar({ view }: { view: MapView }) {
  const { metres, pixels } = scaleBar(view, BAR_PX);
  return (
    <span class="map-scale" style={{ width: `${pixels}px` }}>
      {metres >= 1_000 ? `${(metres / 1_000).toLocaleString()} km` : `${metres.toLocaleString()} m`}
    </span>
  );
}

function onKey(event: KeyboardEvent, change: (make: (before: MapView) => MapView) => void): void {
  const steps: Record<string, (before: MapView) => MapView> = {
    ArrowLeft: (before) => moved(before, -STEP, 0),
    ArrowRight: (before) => moved(before, STEP, 0),
    ArrowUp: (before) => moved(before, 0, -STEP),
    ArrowDown: (before) => moved(before, 0, STEP),
    "+": (before) => zoomed(before, 2),
    "-": (before) => zoomed(before, 0.5),
  };
  const step = steps[event.key];
  if (!step || event.target !== event.currentTarget) return;
  event.preventDefault();
  change(step);
}

/** Dragging moves, the wheel with Ctrl and two fingers zoom. */
function usePointers(box: { current: HTMLDivElement | null }, change: (make: (before: MapView) => MapView) => void) {
  const held = useRef(new Map<number, Point>());
  const apart = (): number => {
    const [a, b] = [...held.current.values()];
    return a && b ? Math.hypot(a[0] - b[0], a[1] - b[1]) : 0;
  };
  return {
    onPointerDown: (event: PointerEvent) => {
      if ((event.target as Element).closest("button, a")) return;
      held.current.set(event.pointerId, [event.clientX, event.clientY]);
      box.current?.setPointerCapture(event.pointerId);
    },
    onPointerMove: (event: PointerEvent) => {
      const before = held.current.get(event.pointerId);
      if (!before) return;
      const was = apart();
      held.current.set(event.pointerId, [event.clientX, event.clientY]);
      const is = apart();
      if (was && is) change((view) => zoomed(view, is / was));
      else change((view) => moved(view, before[0] - event.clientX, before[1] - event.clientY));
    },
    onPointerUp: (event: PointerEvent) => void held.current.delete(event.pointerId),
    onPointerCancel: (event: PointerEvent) => void held.current.delete(event.pointerId),
    onWheel: (event: WheelEvent) => {
      if (!event.ctrlKey) return;
      event.preventDefault();
      const at = box.current?.getBoundingClientRect();
      if (at) change((view) => zoomed(view, 2 ** (-event.deltaY / 200), event.clientX - at.left - at.width / 2, event.clientY - at.top - at.height / 2));
    },
  };
}

function Coasts({ rings, view, width, height }: { rings: readonly Ring[]; view: MapView; width: number; height: number }) {
  const canvas = useRef<HTMLCanvasElement>(null);
  const theme = shownTheme.value;
  useLayoutEffect(() => {
    const element = canvas.current;
    const drawing = element?.getContext("2d");
    if (!element || !drawing) return;
    element.width = Math.round(width * devicePixelRatio);
    element.height = Math.round(height * devicePixelRatio);
    drawing.scale(devicePixelRatio, devicePixelRatio);
    drawing.translate(width / 2, height / 2);
    const colours = getComputedStyle(element);
    drawing.fillStyle = colours.getPropertyValue("--card");
    drawing.strokeStyle = colours.getPropertyValue("--edge");
    drawing.lineWidth = 0.75;
    const [halfX, halfY] = [width / 2 / view.size, height / 2 / view.size];
    drawing.beginPath();
    for (const { points, box } of rings) {
      if (box[2] < view.x - halfX || box[0] > view.x + halfX || box[3] < view.y - halfY || box[1] > view.y + halfY) continue;
      for (let i = 0; i < points.length; i += 2) {
        const x = ((points[i] ?? 0) - view.x) * view.size;
        const y = ((points[i + 1] ?? 0) - view.y) * view.size;
        if (i) drawing.lineTo(x, y);
        else drawing.moveTo(x, y);
      }
      drawing.closePath();
    }
    drawing.fill("evenodd");
    drawing.stroke();
  }, [rings, view.x, view.y, view.size, width, height, theme]);
  return <canvas ref={canvas} aria-hidden="true" />;
}

/** Pictures above the coasts, which stay where one does not come; whose they are is said. */
function Tiles({ view, width, height }: { view: MapView; width: number; height: number }) {
  const source = session.value?.map;
  if (!source?.tiles) return null;
  return (
    <>
      {tilesOf(source.tiles, view, width, height).map(({ address, left, top, size }) => (
        <img key={address} class="tile" src={address} alt="" draggable={false} style={{ left: `${left}px`, top: `${top}px`, width: `${size}px`, height: `${size}px` }} />
      ))}
      {source.attribution && (
        <span class="map-source">
          <Name text={source.attribution} />
        </span>
      )}
    </>
  );
}

function Mark({ marker, onOpen }: { marker: Marker<ObjectRow>; onOpen: (marker: Marker<ObjectRow>) => void }) {
  const { members } = marker;
  const labels = members.filter((each) => each.is_retainer).length;
  const online = members.filter((each) => each.is_online).length;
  const kind = labels ? "warn" : online === members.length ? "" : online ? "part" : "off";
  const state = [t(w.mapOnline, { n: online, total: members.length }), labels ? t(w.mapLabels, { n: labels }) : ""].filter(Boolean).join(", ");
  const name = members.length === 1 ? (members[0]?.name ?? "").slice(0, 80) : t(w.sub, { n: members.length });
  const text = members.length > 1 ? String(members.length) : labels ? "!" : "";
  return (
    <button class={`mark ${kind}`} style={{ left: `${marker.x}px`, top: `${marker.y}px` }} title={`${name}: ${state}`} aria-label={`${name}: ${state}`} onClick={() => onOpen(marker)}>
      {text}
    </button>
  );
}

function Listed({ rows }: { rows: readonly ObjectRow[] }) {
  return (
    <Card title={t(w.mapChosen, { n: rows.length })}>
      <table>
        <tbody>
          {rows.slice(0, LISTED).map((each) => (
            <tr key={each.id}>
              <td>
                <a href={link(["objects", String(each.id)])}>
                  <Name text={each.name} />
                </a>
              </td>
              <td>
                <Flags row={each} />
              </td>
              <td class="narrow-hide dim">
                <Name text={each.gis} mono />
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </Card>
  );
}
