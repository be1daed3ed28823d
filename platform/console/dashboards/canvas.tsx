/** A page of a dashboard while it is edited: widgets are moved and sized by pointer or keys. */
import { useLayoutEffect, useRef, useState } from "preact/hooks";
import { Name } from "../parts/basics.tsx";
import { t } from "../words/words.ts";
import { inReadingOrder, inside, isFree, rowsOf } from "./layout.ts";
import { placeWidget, type DashboardPage, type Json, type Place, type Widget } from "./record.ts";
import { gridPlace, gridSize } from "./view.tsx";
import { Picture } from "./picture.tsx";
import { w } from "./words.ts";

export interface CanvasProps {
  page: DashboardPage;
  script: Json;
  chosen: number | null;
  onChoose: (index: number) => void;
  onChange: (script: Json) => void;
  onRemove: (index: number) => void;
}

/** A widget that is being dragged: where it began, and where it would go. */
interface Drag {
  widget: Widget;
  isSizing: boolean;
  x: number;
  y: number;
  place: Place;
}

const GONE = -1; // the place of no widget
const STEPS: Record<string, [number, number]> = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };

export function Canvas(props: CanvasProps) {
  const { page, script, chosen, onChoose, onChange, onRemove } = props;
  const grid = useRef<HTMLDivElement>(null);
  const [drag, setDrag] = useState<Drag | null>(null);
  const [told, setTold] = useState("");
  const kept = useRef<number | null>(null);
  useLayoutEffect(() => {
    // a widget that is read in another order is another place in the document, and one that is gone has no focus
    if (kept.current !== null && document.activeElement === document.body) (grid.current?.querySelector<HTMLElement>(`[data-widget="${kept.current}"]`) ?? grid.current)?.focus();
    kept.current = null;
  });
  const put = (widget: Widget, place: Place): void => {
    const next = inside(place, page.columns);
    if (JSON.stringify(next) === JSON.stringify(widget.place)) return;
    if (!isFree(page.widgets, widget.index, next)) return setTold(t(w.taken));
    setTold(`${widget.name.slice(0, 100)}: ${placeText(next)}`);
    onChange(placeWidget(script, page.key, widget.index, next));
  };
  const onDown = (event: PointerEvent, widget: Widget, isSizing: boolean): void => {
    if (event.button !== 0) return;
    event.stopPropagation();
    onChoose(widget.index);
    (event.currentTarget as HTMLElement).setPointerCapture(event.pointerId);
    setDrag({ widget, isSizing, x: event.clientX, y: event.clientY, place: widget.place });
  };
  const onMove = (event: PointerEvent): void => {
    if (!drag || !grid.current) return;
    const columns = ((event.clientX - drag.x) / grid.current.clientWidth) * page.columns;
    const rows = ((event.clientY - drag.y) / grid.current.clientHeight) * rowsOf(page);
    setDrag({ ...drag, place: inside(moved(drag.widget.place, columns, rows, drag.isSizing), page.columns) });
  };
  const onUp = (): void => {
    if (drag) put(drag.widget, drag.place);
    setDrag(null);
  };
  const onKey = (event: KeyboardEvent, widget: Widget): void => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const step = STEPS[event.key];
    if (step) {
      kept.current = widget.index;
      put(widget, moved(widget.place, step[0], step[1], event.shiftKey));
    } else if (event.key === "Delete" || event.key === "Backspace") {
      kept.current = GONE;
      onRemove(widget.index);
      setTold(`${widget.name}: ${t(w.removed)}`);
    } else if (event.key === "Enter") onChoose(widget.index);
    else return;
    event.preventDefault();
  };
  return (
    <div class="canvas">
      <div ref={grid} tabIndex={-1} class={`dash-grid editing ${page.picture ? "plan" : ""}`} style={gridSize(page)}>
        {page.picture && <Picture uid={page.picture} />}
        {inReadingOrder(page.widgets).map((each) => {
          const place = drag?.widget.index === each.index ? drag.place : each.place;
          const isTaken = drag?.widget.index === each.index && !isFree(page.widgets, each.index, place);
          return (
            <div
              key={each.index}
              class={`card widget ${each.index === chosen ? "chosen" : ""} ${isTaken ? "taken" : ""}`}
              style={gridPlace(place)}
              tabIndex={0}
              data-widget={each.index}
              role="button"
              aria-pressed={each.index === chosen}
              onPointerDown={(event) => onDown(event, each, false)}
              onPointerMove={onMove}
              onPointerUp={onUp}
              onPointerCancel={() => setDrag(null)}
              onFocus={() => onChoose(each.index)}
              onKeyDown={(event) => onKey(event, each)}
            >
              <span class="strong">
                <Name text={each.name} />{" "}
              </span>
              <span class="dim">{each.type in w ? t(w[each.type as keyof typeof w]) : each.type.slice(0, 16)}</span>
              <span class="sr">{placeText(place)}</span>
              <i class="corner" onPointerDown={(event) => onDown(event, each, true)} onPointerMove={onMove} onPointerUp={onUp} />
            </div>
          );
        })}
      </div>
      <p class="dim" role="status">
        {told}
      </p>
    </div>
  );
}

function moved(place: Place, columns: number, rows: number, isSizing: boolean): Place {
  if (isSizing) return { ...place, width: place.width + columns, height: place.height + rows };
  return { ...place, left: place.left + columns, top: place.top + rows };
}

function placeText(place: Place): string {
  const { left, top, width, height } = place;
  return t(w.place, { left: left + 1, top: top + 1, width, height });
}
