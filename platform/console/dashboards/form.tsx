/** What a widget shows: name, type, variables and range. */
import { useState } from "preact/hooks";
import { Card, Field, Name } from "../parts/basics.tsx";
import { call, page as pageOf } from "../shell/api.ts";
import { useLoad, useRested } from "../shell/hooks.ts";
import { labelOf } from "../objects/variables.ts";
import { w as common } from "../words/common.ts";
import { t } from "../words/words.ts";
import { changeWidget, type DashboardPage, type Json, TYPES, type Widget, type WidgetChange, type WidgetValue } from "./record.ts";
import { w } from "./words.ts";

interface FormProps {
  page: DashboardPage;
  script: Json;
  widget: Widget | null;
  onChange: (script: Json) => void;
}

const FOUND = 20;

export function Form({ page, script, widget, onChange }: FormProps) {
  if (!widget) {
    return (
      <Card title={t(w.widget)} class="widget-form">
        <p class="dim">{t(w.choose)}</p>
      </Card>
    );
  }
  const set = (change: WidgetChange): void => onChange(changeWidget(script, page.key, widget.index, change));
  const isKnown = (TYPES as readonly string[]).includes(widget.type);
  return (
    <Card title={t(w.widget)} class="widget-form">
      <div class="form">
        <Field label={t(common.name)} value={widget.name} maxLength={200} onInput={(event) => set({ name: event.currentTarget.value })} />
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
        <Range widget={widget} name="least" label={t(w.least)} onChange={set} />
        <Range widget={widget} name="most" label={t(w.most)} onChange={set} />
      </div>
    </Card>
  );
}

function Range(props: { widget: Widget; name: "least" | "most"; label: string; onChange: (change: WidgetChange) => void }) {
  const { widget, name, label, onChange } = props;
  const value = widget.attribute[name];
  const set = (text: string): void => onChange({ attribute: { [name]: text === "" ? null : Number(text) } });
  return (
    <Field label={label}>
      <input type="number" step="any" value={typeof value === "number" ? String(value) : ""} onChange={(event) => set(event.currentTarget.value)} />
    </Field>
  );
}

function Values({ widget, onChange }: { widget: Widget; onChange: (values: WidgetValue[]) => void }) {
  return (
    <fieldset>
      <legend class="dim">{t(w.values)}</legend>
      <ul class="controls">
        {widget.values.map((each, index) => (
          <li key={`${each.objectId} ${each.code}`}>
            <Name mono text={each.code} />
            <span class="dim">
              <Name text={each.objectId ? `${t(common.object)} ${each.objectId}` : t(w.ownObject)} />
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
