/** Claim keys, by which a delivery of terminals comes in by itself: made, seen once, ended. */
import { useState } from "preact/hooks";
import type { Fields, Result, RowOf } from "terrazzo-client";
import { Empty, Name } from "../parts/basics.tsx";
import { Ask, FormDialog, ShownOnce } from "../parts/forms.tsx";
import { endColumn, orderBy, RecordList, useDialogs } from "../parts/list.tsx";
import type { Column } from "../parts/table.tsx";
import { call, page } from "../shell/api.ts";
import { useAsked, useLoad } from "../shell/hooks.ts";
import { w as common } from "../words/common.ts";
import { t } from "../words/words.ts";
import { w } from "./words.ts";

type Key = RowOf<Result<"get_claim_key_list">>;

const MOST_CONFIGURATIONS = 200;

export function ClaimKeys() {
  const { dialog, open, close, done, turn, again } = useDialogs<Key | "new">();
  useAsked("add", () => open("new"));
  const [shown, setShown] = useState<{ name: string; key: string } | null>(null);
  const configurations = useLoad((abort) => page("get_terminal_config_list", { page_size: MOST_CONFIGURATIONS }, abort), []);
  const columns: Column<Key>[] = [
    { id: "name", title: t(w.name), sort: "name", width: 28, render: (row) => <Name text={row.name} /> },
    { id: "prefix", title: t(w.prefix).split(" (")[0] ?? "", width: 18, isMinor: true, render: (row) => <Name text={row.prefix} mono /> },
    { id: "used", title: t(w.uses), width: 20, isNumber: true, render: (row) => t(w.usedOf, { used: row.used, uses: row.uses }) },
    { id: "expires", title: t(w.expires), sort: "expires", width: 18, isNumber: true, isMinor: true, render: (row) => row.expires || t(w.never) },
    endColumn<Key>(t(w.end), (row) => t(w.endKey, { name: row.name.slice(0, 80) }), open),
  ];
  const options = [["", "–"] as const, ...(configurations.data?.rows ?? []).map((each) => [String(each.uid), String(each.name)] as const)];
  return (
    <>
      <RecordList
        label={t(w.claimKeys)}
        columns={columns}
        order={{ field: "name", isDown: false }}
        read={(index, size, order, abort) => page("get_claim_key_list", { page_index: index, page_size: size, ...orderBy(order) }, abort)}
        rowKey={(row) => row.uid}
        turn={turn}
        empty={<Empty title={t(w.noClaims)}>{t(w.noClaimsDo)}</Empty>}
        tools={
          <>
            <span class="dim grow">{t(w.claimHint)}</span>
            <button onClick={() => open("new")}>{t(w.addClaim)}</button>
          </>
        }
      />
      {dialog === "new" && (
        <FormDialog
          draft="claim-key new"
          title={t(w.addClaim)}
          submit={t(common.save)}
          initial={{ uses: "100" }}
          fields={[
            { name: "name", label: t(w.name), isRequired: true, most: 64 },
            { name: "uses", label: t(w.uses), kind: "number", least: 1, most: 1_000_000, isRequired: true },
            { name: "prefix", label: t(w.prefix), most: 64 },
            { name: "expires", label: t(w.expiresAt), most: 32 },
            { name: "config_id", label: t(w.config), kind: "choice", options },
          ]}
          onSubmit={async (values) => {
            const given = Object.fromEntries(Object.entries(values).filter(([, value]) => value));
            const made = await call("create_claim_key", { ...given, uses: Number(values["uses"]) } as Fields<"create_claim_key">);
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
          text={t(w.endClaimAsk)}
          action={t(w.end)}
          isDangerous
          onYes={async () => {
            await call("delete_claim_key", { uid: dialog.uid });
            done(t(w.removed));
          }}
          onClose={close}
        />
      )}
      {shown && <ShownOnce title={t(w.shownClaim, { name: shown.name.slice(0, 64) })} text={shown.key} onClose={() => setShown(null)} />}
    </>
  );
}
