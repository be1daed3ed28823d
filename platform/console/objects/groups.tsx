/** Groups of objects: listed, made, renamed and removed; and those that an object is in. */
import { useState } from "preact/hooks";
import { Name } from "../parts/basics.tsx";
import { Ask, FormDialog } from "../parts/forms.tsx";
import { may, pathPage, send } from "../shell/api.ts";
import { useLoad } from "../shell/hooks.ts";
import { go, link } from "../shell/routes.ts";
import { tell, tellError } from "../shell/toasts.tsx";
import { w as common } from "../words/common.ts";
import { t } from "../words/words.ts";
import { w } from "./edit-words.ts";
import { w as objects } from "./words.ts";

export interface Group {
  id: number;
  name: string;
}

interface Membership {
  id: number;
  group_id: number;
}

const PATH = "object/api/v1/group";
const MOST = "1000";

/** All groups, by name. */
export async function readGroups(abort: AbortSignal): Promise<Group[]> {
  const found = await pathPage<Group>(`${PATH}/getList`, { page_size: MOST, order_by: '["name", "asc"]' }, abort);
  return found.rows;
}

/** The groups beside the list of objects; `shown` is the id of one, empty for all objects. */
export function Groups({ groups, shown, onDone }: { groups: Group[]; shown: string; onDone: () => void }) {
  const [dialog, setDialog] = useState<"add" | "rename" | "remove" | null>(null);
  const one = groups.find((each) => String(each.id) === shown);
  const close = () => setDialog(null);
  const done = (told: string) => {
    close();
    onDone();
    tell(told);
  };
  const entry = (id: string, name: string) => (
    <li key={id}>
      <a href={link(["objects"], { group: id })} aria-current={id === shown ? "true" : undefined}>
        <Name text={name} />
      </a>
    </li>
  );
  if (!groups.length && !may("admin")) return null;
  return (
    <nav class="card groups" aria-label={t(objects.groups)}>
      <h2>{t(objects.groups)}</h2>
      <ul>
        {entry("", t(objects.everything))}
        {groups.map((each) => entry(String(each.id), each.name))}
      </ul>
      {may("admin") && (
        <div class="line">
          <button class="small" onClick={() => setDialog("add")}>
            {t(w.groupAdd)}
          </button>
          {one && (
            <button class="small" onClick={() => setDialog("rename")}>
              {t(w.groupRename)}
            </button>
          )}
        </div>
      )}
      {dialog === "add" && (
        <FormDialog
          title={t(w.groupAdd)}
          submit={t(common.save)}
          fields={[{ name: "name", label: t(common.name), isRequired: true, most: 64 }]}
          onSubmit={async (values) => {
            await send(`${PATH}/add`, values);
            done(t(w.saved));
          }}
          onClose={close}
        />
      )}
      {dialog === "rename" && one && (
        <FormDialog
          title={t(w.groupNamed, { name: one.name })}
          submit={t(common.save)}
          initial={{ name: one.name }}
          fields={[{ name: "name", label: t(common.name), isRequired: true, most: 64 }]}
          more={{ title: t(w.remove), onClick: () => setDialog("remove") }}
          onSubmit={async (values) => {
            await send(`${PATH}/edit`, { ...values, id: one.id });
            done(t(w.saved));
          }}
          onClose={close}
        />
      )}
      {dialog === "remove" && one && (
        <Ask
          title={t(w.removeNamed, { name: one.name })}
          text={t(w.groupRemoveAsk)}
          action={t(w.remove)}
          isDangerous
          onYes={async () => {
            for (const each of await membershipsOf("group_id", String(one.id))) await send("object/api/v1/groupmap/delete", { id: each.id });
            await send(`${PATH}/delete`, { id: one.id });
            done(t(w.removed));
            go(link(["objects"]));
          }}
          onClose={close}
        />
      )}
    </nav>
  );
}

async function membershipsOf(field: "group_id" | "object_id", id: string, abort?: AbortSignal): Promise<Membership[]> {
  const where_and = JSON.stringify([[field, "=", Number(id)]]);
  return (await pathPage<Membership>("object/api/v1/groupmap/getList", { where_and, page_size: MOST }, abort)).rows;
}

/** The groups that an object is in; administrators put it into others. */
export function GroupsOf({ id }: { id: string }) {
  const found = useLoad(
    async (abort) => {
      const [groups, mine] = await Promise.all([readGroups(abort), membershipsOf("object_id", id, abort)]);
      return { groups, mine };
    },
    [id],
  );
  const change = async (name: "add" | "delete", fields: object): Promise<void> => {
    try {
      await send(`object/api/v1/groupmap/${name}`, fields);
    } catch (error) {
      tellError(error);
    }
    found.reload();
  };
  const { groups = [], mine = [] } = found.data ?? {};
  const others = groups.filter((each) => !mine.some(({ group_id }) => group_id === each.id));
  return (
    <span class="line">
      {mine.map((each) => {
        const name = groups.find(({ id: group }) => group === each.group_id)?.name ?? String(each.group_id);
        return (
          <span key={each.id} class="nowrap">
            <a href={link(["objects"], { group: String(each.group_id) })}>
              <Name text={name} />
            </a>
            {may("admin") && (
              <button class="plain small" aria-label={t(w.groupLeave, { name: name.slice(0, 80) })} onClick={() => void change("delete", { id: each.id })}>
                {"✕"}
              </button>
            )}
          </span>
        );
      })}
      {!mine.length && found.data && t(common.none)}
      {may("admin") && others.length > 0 && (
        <select aria-label={t(w.groupJoin)} value="" onChange={(event) => void change("add", { group_id: Number(event.currentTarget.value), object_id: Number(id) })}>
          <option value="">{t(w.groupJoin)}</option>
          {others.map((each) => (
            <option key={each.id} value={String(each.id)}>
              {each.name.slice(0, 64)}
            </option>
          ))}
        </select>
      )}
    </span>
  );
}
