/** Groups of objects as a tree: listed, made, moved, renamed and removed; and those that an object is in. */
import { useState } from "preact/hooks";
import { GatewayError } from "terrazzo-client";
import { Name } from "../parts/basics.tsx";
import { Removal, FormDialog } from "../parts/forms.tsx";
import { may, pathPage, send } from "../shell/api.ts";
import { useAsked, useLoad } from "../shell/hooks.ts";
import { go, link } from "../shell/routes.ts";
import { tell, tellError } from "../shell/toasts.tsx";
import { w as common } from "../words/common.ts";
import { t } from "../words/words.ts";
import { w } from "./edit-words.ts";
import { allOf, type Branch, branchOf, type Group, groupIds, isAbove, keyOf, pathOf, renamed, SEPARATOR, treeOf } from "./group-tree.ts";
import { w as objects } from "./words.ts";

interface Membership {
  id: number;
  group_id: number;
}

const PATH = "object/api/v1/group";
const MOST = "1000";
const MOST_CHARS = 64; // of a name
const NOT_ACCEPTED = 10401;
const OPEN_UP_TO = 24; // branches that are all shown at first

/** All groups, by name. */
export async function readGroups(abort: AbortSignal): Promise<Group[]> {
  const found = await pathPage<Group>(`${PATH}/getList`, { page_size: MOST, order_by: '["name", "asc"]' }, abort);
  return found.rows;
}

/** The ids of the groups that an address names: of one, or of a branch with all below it. */
export function groupsMeant(groups: readonly Group[], shown: string): number[] {
  const branch = branchOf(treeOf(groups), shown);
  return branch ? groupIds(branch) : [];
}

/** The groups beside the list of objects; `shown` names a branch, empty for all objects. */
export function Groups({ groups, shown, onDone }: { groups: Group[]; shown: string; onDone: () => void }) {
  const [dialog, setDialog] = useState<"add" | "rename" | "remove" | null>(null);
  useAsked("group", () => may("admin") && setDialog("add"));
  const tree = treeOf(groups);
  const one = branchOf(tree, shown);
  const close = () => setDialog(null);
  const done = (told?: string) => {
    close();
    onDone();
    if (told) tell(told);
  };
  if (!groups.length && !may("admin")) return null;
  return (
    <nav class="card groups" aria-label={t(objects.groups)}>
      <h2>{t(objects.groups)}</h2>
      <ul>
        <li>
          <a href={link(["objects"])} aria-current={shown === "" ? "true" : undefined}>
            {t(objects.everything)}
          </a>
        </li>
        <Branches branches={tree} shown={shown} path={one?.path ?? ""} isOpen={allOf(tree).length <= OPEN_UP_TO} />
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
      {dialog === "add" && <AddGroup tree={tree} below={one?.path ?? ""} onDone={done} onClose={close} />}
      {dialog === "rename" && one && <ChangeGroup tree={tree} one={one} onRemove={() => setDialog("remove")} onDone={done} onClose={close} />}
      {dialog === "remove" && one?.group && <RemoveGroup group={one.group} name={one.name} onDone={done} onClose={close} />}
    </nav>
  );
}

interface BranchesProps {
  branches: readonly Branch[];
  shown: string;
  /** Of the branch that is shown: those above it are open. */
  path: string;
  isOpen: boolean;
}

function Branches({ branches, ...rest }: BranchesProps) {
  return branches.map((each) => <OneBranch key={keyOf(each)} branch={each} {...rest} />);
}

function OneBranch({ branch, shown, path, isOpen }: Omit<BranchesProps, "branches"> & { branch: Branch }) {
  const [chosen, setChosen] = useState<boolean | null>(null);
  const key = keyOf(branch);
  const isUnfolded = chosen ?? (isOpen || isAbove(branch, path));
  return (
    <li>
      <span class="branch">
        {branch.branches.length > 0 && (
          <button class="plain" aria-expanded={isUnfolded} aria-label={t(w.groupBelow, { name: branch.name.slice(0, 80) })} onClick={() => setChosen(!isUnfolded)}>
            <span aria-hidden="true">{isUnfolded ? "▾" : "▸"}</span>
          </button>
        )}
        <a href={link(["objects"], { group: key })} aria-current={key === shown ? "true" : undefined}>
          <Name text={branch.name} />
        </a>
      </span>
      {branch.branches.length > 0 && isUnfolded && (
        <ul>
          <Branches branches={branch.branches} shown={shown} path={path} isOpen={isOpen} />
        </ul>
      )}
    </li>
  );
}

interface DialogProps {
  onDone: (told?: string) => void;
  onClose: () => void;
}

/** Where a group may stand: below none, or below any but `but` and what is below that. */
function places(tree: readonly Branch[], but?: Branch): [value: string, label: string][] {
  const free = allOf(tree).filter((each) => !but || !isAbove(but, each.path));
  return [["", t(w.groupTop)], ...[...new Set(free.map((each) => each.path))].map((path): [string, string] => [path, path])];
}

const joined = (below: string | undefined, name: string | undefined): string => [below ?? "", (name ?? "").trim()].filter(Boolean).join(SEPARATOR);

function AddGroup({ tree, below, onDone, onClose }: { tree: readonly Branch[]; below: string } & DialogProps) {
  return (
    <FormDialog
      draft={`group new ${below}`}
      title={t(w.groupAdd)}
      submit={t(common.save)}
      initial={{ below }}
      fields={[
        { name: "name", label: t(common.name), isRequired: true, most: 64, hint: t(w.groupHint) },
        ...(tree.length ? [{ name: "below", label: t(w.groupPlace), kind: "choice" as const, options: places(tree) }] : []),
      ]}
      onSubmit={async (values) => {
        await send(`${PATH}/add`, { name: joined(values["below"], values["name"]) });
        onDone(t(w.saved));
      }}
      onClose={onClose}
    />
  );
}

/** Renames or moves a branch; what is below it goes with it. */
function ChangeGroup({ tree, one, onRemove, onDone, onClose }: { tree: readonly Branch[]; one: Branch; onRemove: () => void } & DialogProps) {
  const below = one.path.slice(0, Math.max(0, one.path.length - one.name.length - SEPARATOR.length));
  return (
    <FormDialog
      draft={`group ${one.path}`}
      title={t(w.groupNamed, { name: one.name })}
      submit={t(common.save)}
      initial={{ name: one.name, below }}
      fields={[
        { name: "name", label: t(common.name), isRequired: true, most: 64, hint: t(w.groupHint) },
        { name: "below", label: t(w.groupPlace), kind: "choice", options: places(tree, one) },
      ]}
      {...(one.group ? { more: { title: t(common.remove), onClick: onRemove } } : {})}
      onSubmit={async (values) => {
        const path = pathOf(joined(values["below"], values["name"]));
        const changed = renamed(one, path);
        const longest = Math.max(...changed.map((each) => each.name.length));
        if (longest > MOST_CHARS) throw new GatewayError(NOT_ACCEPTED, t(w.groupTooLong, { n: longest }), 400);
        for (const each of changed) await send(`${PATH}/edit`, each);
        onDone(t(w.saved));
        if (!one.group) go(link(["objects"], { group: `/${path}` }));
      }}
      onClose={onClose}
    />
  );
}

function RemoveGroup({ group, name, onDone, onClose }: { group: Group; name: string } & DialogProps) {
  return (
    <Removal
      name={name}
      text={t(w.groupRemoveAsk)}
      remove={async () => {
        for (const each of await membershipsOf("group_id", String(group.id))) await send("object/api/v1/groupmap/delete", { id: each.id });
        await send(`${PATH}/delete`, { id: group.id });
      }}
      onDone={() => {
        onDone();
        go(link(["objects"]));
      }}
      onClose={onClose}
    />
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
