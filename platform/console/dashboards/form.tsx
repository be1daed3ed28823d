/** What a widget shows: name, type, variables and range; where none is chosen, what the page is. */
import { useState } from "preact/hooks";
import { Card, Field, Name } from "../parts/basics.tsx";
import { call, page as pageOf } from "../shell/api.ts";
import { useLoad, useRested } from "../shell/hooks.ts";
import { labelOf } from "../objects/variables.ts";
import { w as common } from "../words/common.ts";
import { t } from "../words/words.ts";
import { changePage, changeWidget, type DashboardPage, type Json, type PageChange, removePage, TYPES, type Widget, type WidgetChange, type WidgetValue } from "./record.ts";
import { w } from "./words.ts";

interface FormProps {
  page: DashboardPage;
  script: Json;
  widget: Widget | null;
  /** Whether the script has other pages. */
  isOneOfMany: boolean;
  /** Changes with the same key that follow each other are one step back. */
  onChange: (script: Json, key?: string) => void;
}

const FOUND = 20;
const RANGED = new Set(["gag", "rad", "bar"]);

export function Form({ page, script, widget, isOneOfMany, onChange }: FormProps) {
  if (!widget) return <PageForm key={page.key} page={page} script={script} isOneOfMany={isOneOfMany} onChange={onChange} />;
  const set = (change: WidgetChange, typed = ""): void => onChange(changeWidget(script, page.key, widget.index, change), typed && `${page.key} ${widget.index} ${typed}`);
  const isKnown = (TYPES as readonly string[]).includes(widget.type);
  return (
    <Card title={t(w.widget)} class="widget-form">
      <div class="form">
        <Field label={t(common.name)} value={widget.name} maxLength={200} onInput={(event) => set({ name: event.currentTarget.value }, "name")} />
        <Field label={t(common.type)}>
          <select value={widget.type} onChange={(event) => set({ type: event.currentTarget.value })}>
            {!isKnown && <option value={widget.type}>{widget.type}</option>}
            {TYPES.map((each) => (
              <option key={each} value={each}>
                {`${each} · ${t(w[each])}`}
              </option>
            ))}
          </select>
        </Field>
        <Values widget={widget} onChange={(values) => set({ attribute: { values } })} />
        {(RANGED.has(widget.type) || !isKnown) && (
          <>
            <Range widget={widget} name="least" label={t(w.least)} onChange={set} />
            <Range widget={widget} name="most" label={t(w.most)} onChange={set} />
          </>
        )}
        {widget.type === "lin" && <Range widget={widget} name="hours" label={t(w.hours)} onChange={set} />}
      </div>
    </Card>
  );
}

function PageForm({ page, script, isOneOfMany, onChange }: Omit<FormProps, "widget">) {
  const [narrow, setNarrow] = useState(0);
  const set = (change: PageChange, typed = ""): void => onChange(changePage(script, page.key, change), typed && `${page.key} ${typed}`);
  const setColumns = (columns: number): void => {
    const outside = page.widgets.filter(({ place }) => place.left + place.width > columns).length;
    setNarrow(outside);
    if (!outside && columns >= 1) set({ columns });
  };
  return (
    <Card title={t(w.page)} class="widget-form">
      <div class="form">
        <p class="dim">{t(w.choose)}</p>
        <Field label={t(common.name)} value={page.name} maxLength={200} onInput={(event) => set({ name: event.currentTarget.value }, "name")} />
        <Field label={t(w.columns)} wrong={narrow ? t(w.narrow, { n: narrow }) : ""}>
          <input type="number" min={1} max={96} value={String(page.columns)} aria-invalid={narrow > 0 || undefined} onChange={(event) => setColumns(Number(event.currentTarget.value))} />
        </Field>
        <Field label={t(w.rows)}>
          <input type="number" min={1} max={500} value={String(page.rows)} onChange={(event) => set({ rows: Number(event.currentTarget.value) })} />
        </Field>
        <Field label={t(w.pageObject)} hint={t(w.pageObjectHint)}>
          <OwnObject id={page.objectId} onChange={(objectId) => set({ objectId })} />
        </Field>
        {isOneOfMany && (
          <span>
            <button class="small danger" onClick={() => onChange(removePage(script, page.key))}>
              {t(w.removePage)}
            </button>
          </span>
        )}
      </div>
    </Card>
  );
}

const MOST_OBJECTS = 500;

function OwnObject({ id, onChange }: { id: string; onChange: (id: string) => void }) {
  const { data } = useLoad((abort) => pageOf("get_object_list", { page_size: MOST_OBJECTS, order_by: ["name", "asc"] }, abort), []);
  const rows = data?.rows ?? [];
  return (
    <select value={id} onChange={(event) => onChange(event.currentTarget.value)}>
      <option value="">{"–"}</option>
      {id && !rows.some((each) => String(each.id) === id) && <option value={id}>{id}</option>}
      {rows.map((each) => (
        <option key={each.id} value={String(each.id)}>
          {each.name}
        </option>
      ))}
    </select>
  );
}

function Range(props: { widget: Widget; name: "least" | "most" | "hours"; label: string; onChange: (change: WidgetChange, typed: string) => void }) {
  const { widget, name, label, onChange } = props;
  const value = widget.attribute[name];
  const set = (text: string): void => onChange({ attribute: { [name]: text === "" ? null : Number(text) } }, name);
  return (
    <Field label={label}>
      <input type="number" step="any" value={typeof value === "number" ? String(value) : ""} onChange={(event) => set(event.currentTarget.value)} />
    </Field>
  );
}

function Values({ widget, onChange }: { widget: Widget; onChange: (values: WidgetValue[]) => void }) {
  const ids = [...new Set(widget.values.map((each) => each.objectId).filter(Boolean))];
  const names = useLoad((abort) => (ids.length ? pageOf("get_object_list", { where_in: ["id", ids], page_size: ids.length }, abort) : Promise.resolve(null)), [ids.join()]);
  const nameOf = (id: string): string => names.data?.rows.find((each) => String(each.id) === id)?.name ?? `${t(common.object)} ${id}`;
  return (
    <fieldset>
      <legend class="dim">{t(w.values)}</legend>
      <ul class="controls">
        {widget.values.map((each, index) => (
          <li key={`${each.objectId} ${each.code}`}>
            <Name mono text={each.code} />
            <span class="dim">
              <Name text={each.objectId ? nameOf(each.objectId) : t(w.ownObject)} />
            </span>
            <button class="small" onClick={() => onChange(widget.values.filter((_value, at) => at !== index))}>
              {t(common.remove)}
            </button>
          </li>
        ))}
      </ul>
      <Adding onAdd={(value) => onChange([...widget.values, value])} />
    </fieldset>
  );
}

function Adding({ onAdd }: { onAdd: (value: WidgetValue) => void }) {
  const [text, setText] = useState("");
  const [objectId, setObject] = useState("");
  const [code, setCode] = useState("");
  const wanted = useRested(text, 200);
  const objects = useLoad(
    (abort) => pageOf("get_object_list", { page_size: FOUND, order_by: ["name", "asc"], ...(wanted ? { where_and: [["name", "like", `%${wanted}%`]] } : {}) }, abort),
    [wanted],
  );
  const variables = useLoad(async (abort) => (objectId ? call("get_object_variable_list", { object_id: objectId }, abort) : []), [objectId]);
  const add = (): void => {
    onAdd({ objectId, code });
    setCode("");
  };
  return (
    <div class="form">
      <Field label={t(common.search)} type="search" value={text} onInput={(event) => setText(event.currentTarget.value)} />
      <Field label={t(common.object)}>
        <select value={objectId} onChange={(event) => setObject(event.currentTarget.value)}>
          <option value="">{"–"}</option>
          {objects.data?.rows.map((each) => (
            <option key={each.id} value={String(each.id)}>
              {each.name}
            </option>
          ))}
        </select>
      </Field>
      <Field label={t(w.variable)}>
        <select value={code} onChange={(event) => setCode(event.currentTarget.value)}>
          <option value="">{"–"}</option>
          {variables.data?.map((each) => (
            <option key={each.code} value={each.code}>
              {`${labelOf(each)} (${each.code})`}
            </option>
          ))}
        </select>
      </Field>
      <button class="small" disabled={!objectId || !code} onClick={add}>
        {t(w.addValue)}
      </button>
    </div>
  );
}
