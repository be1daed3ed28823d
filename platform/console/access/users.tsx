/** Users: of one's company; super users see those of all. */
import type { Fields, Result, RowOf } from "terrazzo-client";
import { Empty, Name, Tag } from "../parts/basics.tsx";
import { Ask, FormDialog, Removal, type FormField, type Values } from "../parts/forms.tsx";
import { orderBy, RecordList, useDialogs } from "../parts/list.tsx";
import type { Column } from "../parts/table.tsx";
import { call, page, session } from "../shell/api.ts";
import { useAsked, useLoad } from "../shell/hooks.ts";
import { replaceQuery, route } from "../shell/routes.ts";
import { w as common } from "../words/common.ts";
import { t } from "../words/words.ts";
import { w } from "./words.ts";

type User = RowOf<Result<"get_user_list">>;
type Doing = { kind: "add" } | { kind: "edit" | "remove" | "factor"; user: User };

const MOST_COMPANIES = 500;

export function Users() {
  const isSuper = !!session.value?.is_super;
  const { dialog, open, close, done, gone, turn } = useDialogs<Doing>();
  useAsked("add", () => open({ kind: "add" }));
  const search = route.value.query.get("search") ?? "";
  const companies = useLoad((abort) => (isSuper ? page("get_company_list", { page_size: MOST_COMPANIES }, abort) : Promise.resolve(null)), [isSuper, turn]);
  const names = new Map(companies.data?.rows.map((each) => [String(each.id), each.name]));
  const columns: Column<User>[] = [
    { id: "name", title: t(w.user), sort: "username", width: 22, render: (row) => <Name text={row.username} /> },
    { id: "role", title: t(w.role), sort: "role", width: 12, render: (row) => t(row.is_super ? w.superTag : (common[row.role as "viewer"] ?? common.viewer)) },
    ...(isSuper ? [{ id: "company", title: t(w.company), width: 16, isMinor: true, render: (row: User) => <Name text={names.get(row.permission_company_id ?? "") ?? row.permission_company_id ?? ""} /> }] : []),
    { id: "email", title: t(w.email), width: 20, isMinor: true, render: (row) => <Name text={row.email} /> },
    { id: "state", title: t(common.state), width: 16, render: (row) => <States user={row} /> },
    {
      id: "do",
      title: t(common.edit),
      isTitleHidden: true,
      isNumber: true,
      render: (row) => (
        <>
          <button class="small" aria-label={`${t(common.edit)} ${row.username}`.slice(0, 100)} onClick={() => open({ kind: "edit", user: row })}>
            {t(common.edit)}
          </button>{" "}
          <button class="small" aria-label={`${t(common.remove)} ${row.username}`.slice(0, 100)} onClick={() => open({ kind: "remove", user: row })}>
            {t(common.remove)}
          </button>
        </>
      ),
    },
  ];
  return (
    <>
      <RecordList
        label={t(w.users)}
        columns={columns}
        query={`${search} ${names.size}`}
        order={{ field: "username", isDown: false }}
        read={(index, size, order, abort) => page("get_user_list", { page_index: index, page_size: size, ...orderBy(order), ...(search ? { where_or: [["username", "like", `%${search}%`], ["email", "like", `%${search}%`]] } : {}) }, abort)}
        rowKey={(row) => row.uid}
        turn={turn}
        empty={<Empty title={t(w.noUsers)}>{t(w.noUsersDo)}</Empty>}
        tools={
          <>
            <label class="grow">
              <span class="sr">{t(w.search)}</span>
              <input type="search" maxLength={64} placeholder={t(w.search)} value={search} onChange={(event) => replaceQuery({ search: event.currentTarget.value.trim() })} />
            </label>
            <button onClick={() => open({ kind: "add" })}>{t(w.addUser)}</button>
          </>
        }
      />
      {dialog?.kind === "add" && (
        <FormDialog
          draft="user new"
          title={t(w.addUser)}
          submit={t(common.save)}
          fields={fieldsOf(null, isSuper, companies.data?.rows ?? [])}
          initial={{ is_active: "1", permission_company_id: session.value?.company_id ?? "" }}
          onSubmit={async (values) => {
            await call("create_user", sent(values) as Fields<"create_user">);
            done(t(w.saved));
          }}
          onClose={close}
        />
      )}
      {dialog?.kind === "edit" && (
        <FormDialog
          draft={`user ${dialog.user.id}`}
          title={t(w.editUser, { name: dialog.user.username.slice(0, 64) })}
          username={dialog.user.username}
          submit={t(common.save)}
          fields={fieldsOf(dialog.user, isSuper, [])}
          initial={Object.fromEntries(Object.entries(dialog.user).map(([name, value]) => [name, String(value ?? "")]))}
          onSubmit={async (values) => {
            if (!values["password"]) delete values["password"];
            await call("update_user", { ...sent(values), id: dialog.user.id } as Fields<"update_user">);
            done(t(w.saved));
          }}
          onClose={close}
        />
      )}
      {dialog?.kind === "edit" && !!dialog.user.has_second_factor && !isOwn(dialog.user) && (
        <div class="toasts">
          <div class="toast">
            <div>{t(w.factor)}</div>
            <button class="small" onClick={() => open({ kind: "factor", user: dialog.user })}>
              {t(w.removeFactor)}
            </button>
          </div>
        </div>
      )}
      {dialog?.kind === "factor" && (
        <Ask
          title={t(w.removeFactor)}
          text={t(w.removeFactorAsk, { name: dialog.user.username.slice(0, 64) })}
          action={t(w.removeFactor)}
          isDangerous
          onYes={async () => {
            await call("remove_second_factor", { uid: dialog.user.uid } as Fields<"remove_second_factor">);
            done(t(w.saved));
          }}
          onClose={close}
        />
      )}
      {dialog?.kind === "remove" && (
        <Removal
          name={dialog.user.username}
          title={t(w.removeUser, { name: dialog.user.username.slice(0, 64) })}
          text={t(w.removeUserAsk)}
          remove={() => call("delete_user", { id: dialog.user.id })}
          onDone={gone}
          onClose={close}
        />
      )}
    </>
  );
}

function States({ user }: { user: User }) {
  return (
    <span class="line">
      <Tag kind={user.is_active ? "good" : "warn"}>{t(user.is_active ? w.isActive : w.deactivated)}</Tag>
      {!!user.by_sso && <Tag>{t(w.sso)}</Tag>}
      {!!user.has_second_factor && <Tag kind="info">{t(w.factor)}</Tag>}
    </span>
  );
}

/** Who is logged in changes the own password, and takes the own second factor away, by what they prove themselves with. */
const isOwn = (user: User | null): boolean => user !== null && user.username === session.value?.username;

function fieldsOf(user: User | null, isSuper: boolean, companies: readonly { id: number; name: string }[]): FormField[] {
  return [
    ...(user ? [] : [{ name: "username", label: t(w.user), isRequired: true, most: 64 }]),
    ...(isOwn(user) ? [] : [{ name: "password", label: t(user ? w.newPassword : w.password), kind: "password" as const, isRequired: !user, least: 8, most: 256 }]),
    { name: "role", label: t(w.role), kind: "choice", options: [["viewer", t(common.viewer)], ["operator", t(common.operator)], ["admin", t(common.admin)]] },
    ...(companies.length ? [{ name: "permission_company_id", label: t(w.company), kind: "choice" as const, options: companies.map((each) => [String(each.id), each.name] as const) }] : []),
    { name: "email", label: t(w.email), kind: "email", most: 128 },
    { name: "mobile", label: t(w.mobile), most: 32 },
    { name: "description", label: t(w.description), most: 255 },
    { name: "is_active", label: t(w.active), kind: "switch" },
    { name: "by_sso", label: t(w.bySso), kind: "switch" },
    ...(isSuper ? [{ name: "is_super", label: t(w.isSuper), kind: "switch" as const }] : []),
  ];
}

const NUMBERS = new Set(["is_active", "by_sso", "is_super"]);

function sent(values: Values): Record<string, unknown> {
  return Object.fromEntries(Object.entries(values).map(([name, value]) => [name, NUMBERS.has(name) ? Number(value) : value]));
}
