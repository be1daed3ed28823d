/** Writing what people know of an object: a service record, or a value that no terminal reports; changed and removed, too. */
import { useState } from "preact/hooks";
import { Problem } from "../parts/basics.tsx";
import { Removal, FormDialog, type FormField, type Values } from "../parts/forms.tsx";
import { may, pathPage, send, session } from "../shell/api.ts";
import { useLoad } from "../shell/hooks.ts";
import { tell } from "../shell/toasts.tsx";
import { w as common } from "../words/common.ts";
import { t } from "../words/words.ts";
import type { ObjectItem } from "./object.tsx";
import { CATEGORIES, w } from "./record-words.ts";
import type { Collected, Service } from "./records.tsx";
import { w as objects } from "./words.ts";

interface Props<R> {
  row: ObjectItem;
  /** Which is changed; without one a new one is written. */
  record: R | null;
  onClose: () => void;
  onDone: () => void;
}

interface Project {
  id: number;
  name: string;
}

const SERVICE = "service/api/v1/service";
const COLLECTED = "offline/api/v1/collectos";
const PROJECT = "offline/api/v1/collect";
const NEW = "new";
const MOST_PROJECTS = "1000";

const writer = (): string => (session.value?.username ?? "").slice(0, 32);

export function ServiceDialog({ row, record, onClose, onDone }: Props<Service>) {
  const fields: FormField[] = [
    { name: "name", label: t(w.what), isRequired: true, most: 64 },
    { name: "category", label: t(w.kind), kind: "choice", options: choicesOf(record?.category) },
    { name: "staff_name", label: t(w.staff), most: 32 },
    { name: "description", label: t(objects.description), kind: "long", most: 255 },
  ];
  return (
    <RecordForm
      objectId={row.id}
      path={SERVICE}
      title={record ? t(w.changeNamed, { name: record.name.slice(0, 64) }) : t(w.serviceOf, { name: row.name })}
      record={record}
      ask={t(w.serviceRemoveAsk)}
      fields={fields}
      initial={record ? valuesOf(record, fields) : { staff_name: writer() }}
      save={(values) => send(`${SERVICE}/${record ? "edit" : "add"}`, { ...values, ...(record ? { id: record.id } : { object_id: row.id, source: "object" }) })}
      onClose={onClose}
      onDone={onDone}
    />
  );
}

/** The kinds, and that of a record which has another one. */
function choicesOf(category: string | undefined): (readonly [string, string])[] {
  const known = Object.entries(CATEGORIES).map(([value, word]) => [value, t(word)] as const);
  return category === undefined || category in CATEGORIES ? known : [[category, category], ...known];
}

export function CollectDialog({ row, record, onClose, onDone }: Props<Collected>) {
  const { data, error, reload } = useLoad((abort) => pathPage<Project>(`${PROJECT}/getList`, { page_size: MOST_PROJECTS, order_by: '["name", "asc"]' }, abort), []);
  if (error !== undefined) return <Problem error={error} retry={reload} />;
  if (!data) return null;
  return <CollectForm row={row} record={record} projects={data.rows} onClose={onClose} onDone={onDone} />;
}

function CollectForm({ row, record, projects, onClose, onDone }: Props<Collected> & { projects: readonly Project[] }) {
  const known = projects.map((each) => [String(each.id), each.name] as const);
  const options = may("admin") && !record ? [...known, [NEW, t(w.newProject)] as const] : known;
  const fields: FormField[] = [
    { name: "project_id", label: t(w.project), kind: "choice", options, hint: options.length ? t(w.projectHint) : t(w.noProjects) },
    ...(may("admin") && !record ? [{ name: "project", label: t(w.projectName), most: 64, isShown: (values: Values) => values["project_id"] === NEW, isRequired: true }] : []),
    { name: "value", label: t(common.value), isRequired: true, most: 16_384, hint: t(w.collectHint) },
    { name: "collector", label: t(w.staff), most: 32 },
    { name: "description", label: t(w.note), most: 255 },
  ];
  const save = async (values: Values): Promise<void> => {
    const { project_id = "", project = "", value = "", collector = "", description = "" } = values;
    const number = project_id === NEW ? await made(project.trim()) : Number(project_id);
    const name = projects.find((each) => each.id === number)?.name ?? project.trim();
    const written = { project_id: number, value, collector, description };
    await send(`${COLLECTED}/${record ? "edit" : "add"}`, record ? { ...written, id: record.id } : { ...written, name, object_id: row.id });
  };
  return (
    <RecordForm
      objectId={row.id}
      path={COLLECTED}
      title={record ? t(w.changeNamed, { name: record.name.slice(0, 64) }) : t(w.collectOf, { name: row.name })}
      record={record}
      ask={t(w.collectRemoveAsk)}
      fields={fields}
      initial={record ? valuesOf(record, fields) : { collector: writer() }}
      save={save}
      onClose={onClose}
      onDone={onDone}
    />
  );
}

/** The id of a new project; where one of the name is there already, that one's. */
async function made(name: string): Promise<number> {
  const query = { where_and: JSON.stringify([["name", "=", name]]), page_size: "1", order_by: '["id", "desc"]' };
  const before = await pathPage<Project>(`${PROJECT}/getList`, query);
  if (!before.rows.length) await send(`${PROJECT}/add`, { name });
  const found = before.rows[0] ?? (await pathPage<Project>(`${PROJECT}/getList`, query)).rows[0];
  if (!found) throw new Error(`${PROJECT}: ${name}`);
  return found.id;
}

function valuesOf(record: object, fields: readonly FormField[]): Values {
  const known = record as Readonly<Record<string, unknown>>;
  return Object.fromEntries(fields.map(({ name }) => [name, String(known[name] ?? "")]));
}

interface FormProps {
  path: string;
  /** Of the object that it is about. */
  objectId: number;
  title: string;
  record: { id: number; name: string } | null;
  /** What is asked before it is removed. */
  ask: string;
  fields: readonly FormField[];
  initial: Values;
  save: (values: Values) => Promise<unknown>;
  onClose: () => void;
  onDone: () => void;
}

function RecordForm({ path, objectId, title, record, ask, fields, initial, save, onClose, onDone }: FormProps) {
  const [isRemoving, setRemoving] = useState(false);
  const done = (told: string): void => {
    onClose();
    onDone();
    tell(told);
  };
  if (record && isRemoving) {
    const gone = (): void => {
      onClose();
      onDone();
    };
    return <Removal name={record.name} text={ask} remove={() => send(`${path}/delete`, { id: record.id })} onDone={gone} onClose={() => setRemoving(false)} />;
  }
  return (
    <FormDialog
      draft={`${path} ${record?.id ?? `new ${objectId}`}`}
      title={title}
      submit={t(common.save)}
      initial={initial}
      fields={fields}
      {...(record ? { more: { title: t(common.remove), onClick: () => setRemoving(true) } } : {})}
      onSubmit={async (values) => {
        await save(values);
        done(t(w.saved));
      }}
      onClose={onClose}
    />
  );
}
