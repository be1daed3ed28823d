/** API keys: made, seen once, ended. */
import { useState } from "preact/hooks";
import type { Result, RowOf } from "terrazzo-client";
import { Age, Empty, Name } from "../parts/basics.tsx";
import { Ask, FormDialog, ShownOnce } from "../parts/forms.tsx";
import { endColumn, orderBy, RecordList, useDialogs } from "../parts/list.tsx";
import type { Column } from "../parts/table.tsx";
import { call, may, page } from "../shell/api.ts";
import { useAsked } from "../shell/hooks.ts";
import { w as common } from "../words/common.ts";
import { t } from "../words/words.ts";
import { w } from "./words.ts";

type Key = RowOf<Result<"get_api_key_list">>;

export function ApiKeys() {
  const { dialog, open, close, done, turn, again } = useDialogs<Key | "new">();
  useAsked("add", () => open("new"));
  const [shown, setShown] = useState<{ name: string; key: string } | null>(null);
  const columns: Column<Key>[] = [
    { id: "name", title: t(w.name), sort: "name", width: 22, render: (row) => <Name text={row.name} /> },
    { id: "prefix", title: t(w.begins), width: 15, isMinor: true, render: (row) => <Name text={row.prefix} mono /> },
    { id: "role", title: t(w.role), width: 12, render: (row) => t(row.is_super ? w.superTag : (common[row.role as "viewer"] ?? common.viewer)) },
    { id: "user", title: t(w.maker), width: 14, isMinor: true, render: (row) => <Name text={row.username} /> },
    { id: "used", title: t(w.used), width: 10, isNumber: true, render: (row) => <Age at={row.last_used} /> },
    { id: "expires", title: t(w.expires), sort: "expires", width: 16, isNumber: true, isMinor: true, render: (row) => row.expires.slice(0, 10) },
    endColumn<Key>(t(w.end), (row) => t(w.endKey, { name: row.name.slice(0, 80) }), open),
  ];
  const roles = (["viewer", "operator", "admin"] as const).filter((role) => may(role)).map((role) => [role, t(common[role])] as const);
  return (
    <>
      <RecordList
        label={t(w.apiKeys)}
        columns={columns}
        order={{ field: "name", isDown: false }}
        read={(index, size, order, abort) => page("get_api_key_list", { page_index: index, page_size: size, ...orderBy(order) }, abort)}
        rowKey={(row) => row.uid}
        turn={turn}
        empty={<Empty title={t(w.noKeys)}>{t(w.noKeysDo)}</Empty>}
        tools={
          <>
            <span class="dim grow">{t(w.keyHint)}</span>
            <button onClick={() => open("new")}>{t(w.addKey)}</button>
          </>
        }
      />
      {dialog === "new" && (
        <FormDialog
          draft="api-key new"
          title={t(w.addKey)}
          submit={t(common.save)}
          initial={{ days: "365" }}
          fields={[
            { name: "name", label: t(w.name), isRequired: true, most: 64 },
            { name: "role", label: t(w.role), kind: "choice", options: roles },
            { name: "days", label: t(w.days), kind: "number", least: 1, most: 3_660, isRequired: true },
            { name: "description", label: t(w.description), most: 255 },
          ]}
          onSubmit={async (values) => {
            const made = await call("create_api_key", { name: values["name"] ?? "", role: values["role"] ?? "viewer", days: Number(values["days"]), description: values["description"] ?? "" });
            close();
            setShown({ name: values["name"] ?? "", key: made.key });
            again();
          }}
          onClose={close}
        />
      )}
      {dialog && dialog !== "new" && (
        <Ask
          title={t(w.endKey, { name: dialog.name.slice(0, 64) })}
          text={t(w.endKeyAsk)}
          action={t(w.end)}
          isDangerous
          onYes={async () => {
            await call("delete_api_key", { uid: dialog.uid });
            done(t(w.removed));
          }}
          onClose={close}
        />
      )}
      {shown && <ShownOnce title={t(w.shownKey, { name: shown.name.slice(0, 64) })} text={shown.key} onClose={() => setShown(null)} />}
    </>
  );
}
