/** What came of one script: curves of its variables by period, on one object. */
import { useMemo, useState } from "preact/hooks";
import { Chart } from "../charts/chart.tsx";
import { type ChartView, HOUR_MS, readView, writeView } from "../charts/link.ts";
import { Card, Empty, Head, Name, Problem, Tag } from "../parts/basics.tsx";
import { type call, may, page } from "../shell/api.ts";
import { useLoad } from "../shell/hooks.ts";
import { go, link, replaceQuery, route } from "../shell/routes.ts";
import { tell } from "../shell/toasts.tsx";
import { language, t } from "../words/words.ts";
import { AgainButton, AgainProgress, useAgain } from "./again.tsx";
import { ScriptEditor } from "./editor.tsx";
import { savedText } from "./list.tsx";
import { columnsOf, item, type Kind, KINDS, resultsOf, type Script } from "./scripts.ts";
import { w } from "./words.ts";

const TYPES = [
  { id: 1, title: w.hour, spanMs: 7 * 24 * HOUR_MS },
  { id: 2, title: w.day, spanMs: 30 * 24 * HOUR_MS },
  { id: 3, title: w.month, spanMs: 365 * 24 * HOUR_MS },
  { id: 4, title: w.year, spanMs: 10 * 365 * 24 * HOUR_MS },
];
const MOST_OBJECTS = 1_000;
const UNBROKEN = 14; // characters
const PLAIN = new Set(["label_en", "label_cn"]); // words, not codes

interface Props {
  kind: "statistics" | "calculate";
  uid: string;
}

export function Results({ kind, uid }: Props) {
  const { data, error, reload } = useLoad((abort) => item(kind, uid, abort), [kind, uid]);
  const objects = useLoad((abort) => (data ? namesOf(data, abort) : Promise.resolve([])), [data?.uid]);
  const again = useAgain(kind === "statistics" ? uid : "");
  const chosen = route.value.query.get("object") ?? objects.data?.[0]?.id ?? "";
  return (
    <>
      <Head name title={data?.name ?? ""} sub={data && <Tag kind={data.is_active ? "good" : ""}>{t(data.is_active ? w.running : w.stopped)}</Tag>}>
        {data && kind === "statistics" && may("admin") && <AgainButton script={data} objects={objects.data ?? []} onAsked={again.asked} />}
        {data && <EditButton kind={kind} script={data} list={["statistics", kind]} onDone={reload} />}
        <a class="button" href={link(["statistics", kind])}>
          {t(KINDS.find((each) => each.id === kind)?.title ?? w.all)}
        </a>
      </Head>
      {!!error && <Problem error={error} retry={reload} />}
      {data && (
        <div class="stack">
          <AgainProgress again={again} script={data} objects={objects.data ?? []} />
          <Choice objects={objects.data ?? []} chosen={chosen} />
          {chosen ? (
            <Curves key={again.finished} kind={kind} script={data} objectId={chosen} />
          ) : (
            !objects.isLoading && (
              <Card>
                <Empty title={t(w.noResults)}>{t(w.noResultsDo)}</Empty>
              </Card>
            )
          )}
          <Rows kind={kind} script={data} />
        </div>
      )}
    </>
  );
}

/** Opens the editor, for administrators; a script that was removed leads to the list of those that are left. */
export function EditButton({ kind, script, list, onDone }: { kind: Kind; script: Script; list: readonly string[]; onDone: () => void }) {
  const [isOpen, setOpen] = useState(false);
  if (!may("admin")) return null;
  const done = () => {
    setOpen(false);
    tell(savedText(kind));
    onDone();
  };
  const onRemoved = () => go(link(list));
  return (
    <>
      <button onClick={() => setOpen(true)}>{t(w.edit)}</button>
      {isOpen && <ScriptEditor script={script} kind={kind} onClose={() => setOpen(false)} onDone={done} onRemoved={onRemoved} />}
    </>
  );
}

function Choice({ objects, chosen }: { objects: readonly { id: string; name: string }[]; chosen: string }) {
  const type = route.value.query.get("type") ?? "1";
  return (
    <div class="tools">
      <select aria-label={t(w.object)} value={chosen} onChange={(event) => replaceQuery({ object: event.currentTarget.value })}>
        {objects.map((each) => (
          <option key={each.id} value={each.id}>
            {each.name.slice(0, 100)}
          </option>
        ))}
      </select>
      <select aria-label={t(w.period)} value={type} onChange={(event) => replaceQuery({ type: event.currentTarget.value, span: "", from: "", to: "" })}>
        {TYPES.map((each) => (
          <option key={each.id} value={String(each.id)}>
            {t(each.title)}
          </option>
        ))}
      </select>
    </div>
  );
}

function Curves({ kind, script, objectId }: { kind: Props["kind"]; script: Script; objectId: string }) {
  const query = route.value.query;
  const type = Number(query.get("type") ?? 1);
  const source = useMemo(() => resultsOf(kind, script.uid, objectId, type), [kind, script.uid, objectId, type]);
  const names = [...new Set(script.rows.map((row) => row[0] ?? ""))].filter(Boolean);
  const read = readView(query);
  const spanMs = TYPES.find((each) => each.id === type)?.spanMs ?? 7 * 24 * HOUR_MS;
  const view: ChartView = { ...read, keys: names, ...(query.has("span") || query.has("from") ? {} : { spanMs }) };
  const variables = names.map((name) => ({ key: name, name, unit: "", decimals: null, isAlone: true }));
  const keep = (next: ChartView) => {
    const written = writeView({ ...next, keys: [] });
    replaceQuery({ span: "", from: "", to: "", hide: "", compare: "", as: "", ...Object.fromEntries(written) });
  };
  return (
    <Card title={t(w.results)}>
      <Chart key={`${objectId} ${type}`} title={script.name} source={source} variables={variables} view={view} onView={keep} />
    </Card>
  );
}

/** How a cell looks: codes are not broken where they are short, and on a phone the label of the other language is left out. */
function cellClass(column: string, cell: string, strange: string): string {
  return [PLAIN.has(column) ? "" : "mono", PLAIN.has(column) || cell.length > UNBROKEN ? "" : "nowrap", column === strange ? "narrow-hide" : ""].filter(Boolean).join(" ");
}

/** What the script says. */
export function Rows({ kind, script }: { kind: Kind; script: Script }) {
  const strange = language.value === "zh" ? "label_en" : "label_cn";
  return (
    <Card title={t(w.rows)}>
      <div class="scroll" tabIndex={0} role="group" aria-label={t(w.rows)}>
        <table>
          <thead>
            <tr>
              {columnsOf(kind).map((each) => (
                <th key={each.id} scope="col" class={each.id === strange ? "narrow-hide" : ""}>
                  {t(each.title)}
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {script.rows.map((row, i) => (
              <tr key={i}>
                {row.map((cell, j) => (
                  <td key={j} class={cellClass(columnsOf(kind)[j]?.id ?? "", cell, strange)}>
                    <Name text={cell} />
                  </td>
                ))}
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </Card>
  );
}

/** The script's objects by name; of one that is for all objects, those that have results. */
export async function namesOf(script: Script, abort: AbortSignal): Promise<{ id: string; name: string }[]> {
  const wanted = script.object_list.length ? { where_in: ["id", script.object_list.slice(0, MOST_OBJECTS)] as unknown[] } : {};
  const found = await page("get_object_list", { page_size: MOST_OBJECTS, order_by: ["name", "asc"], ...wanted } as Parameters<typeof call<"get_object_list">>[1], abort);
  return found.rows.map((each) => ({ id: String(each["id"]), name: String(each["name"]) }));
}
