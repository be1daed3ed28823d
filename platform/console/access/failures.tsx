/** Failed logins of users and terminals, who is kept waiting, and letting them in again. */
import type { Result, RowOf } from "terrazzo-client";
import { Age, Empty, Name } from "../parts/basics.tsx";
import { RecordList, useDialogs } from "../parts/list.tsx";
import type { Column } from "../parts/table.tsx";
import { call, page } from "../shell/api.ts";
import { tellError } from "../shell/toasts.tsx";
import { kindWord } from "../shell/found.ts";
import { t } from "../words/words.ts";
import { w } from "./words.ts";

type Failed = RowOf<Result<"get_login_failure_list">>;

export function Failures() {
  const { done, turn } = useDialogs<never>();
  const unlock = async (row: Failed) => {
    try {
      await call(row.kind === "user" ? "unlock_user" : "unlock_terminal", { uid: row.uid });
      done(t(w.unlocked, { name: row.uid.slice(0, 64) }));
    } catch (error) {
      tellError(error);
    }
  };
  const columns: Column<Failed>[] = [
    { id: "kind", title: t(w.who), width: 12, render: (row) => t(kindWord(row.kind)) },
    { id: "uid", title: t(w.name), width: 22, render: (row) => <Name text={row.uid} mono /> },
    { id: "address", title: t(w.from), width: 18, isMinor: true, render: (row) => <Name text={row.address || t(w.allAddresses)} mono /> },
    { id: "failures", title: t(w.tries), width: 10, isNumber: true, render: (row) => row.failures.toLocaleString() },
    { id: "last", title: t(w.last), width: 10, isNumber: true, isMinor: true, render: (row) => <Age at={row.last_time} /> },
    { id: "until", title: t(w.until), width: 16, isNumber: true, isOwnLine: true, render: (row) => row.until ?? "" },
    {
      id: "do",
      title: t(w.unlock),
      isTitleHidden: true,
      isNumber: true,
      render: (row) => (
        <button class="small" aria-label={`${t(w.unlock)} ${row.uid}`.slice(0, 100)} onClick={() => void unlock(row)}>
          {t(w.unlock)}
        </button>
      ),
    },
  ];
  return (
    <RecordList
      label={t(w.failures)}
      columns={columns}
      read={(index, size, _, abort) => page("get_login_failure_list", { page_index: index, page_size: size }, abort)}
      rowKey={(row) => `${row.kind} ${row.uid} ${row.address}`}
      turn={turn}
      empty={<Empty title={t(w.noFailures)}>{t(w.noFailuresDo)}</Empty>}
    />
  );
}
