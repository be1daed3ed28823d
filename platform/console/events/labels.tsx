/** Open labels, the oldest first; whoever may, closes them. */
import { useState } from "preact/hooks";
import type { Result, RowOf } from "../client/gateway.ts";
import { Age, Card, Empty, Name } from "../parts/basics.tsx";
import { type Column, Table } from "../parts/table.tsx";
import { call, may, page } from "../shell/api.ts";
import { useLive, useSeldom } from "../shell/hooks.ts";
import { tell, tellError } from "../shell/toasts.tsx";
import { w as common } from "../words/common.ts";
import { t } from "../words/words.ts";
import { nameOf } from "./events.tsx";
import { w } from "./words.ts";

type Label = RowOf<Result<"get_open_retainer_list">>;
const SETTLE_MS = 2_000;

export function Labels() {
  const [turn, setTurn] = useState(0);
  const again = () => setTurn((n) => n + 1);
  const soon = useSeldom(again, SETTLE_MS);
  useLive({ kinds: ["retainer"] }, soon, soon);
  const close = async (label: Label) => {
    try {
      await call("close_retainer", { object_id: label.object_id, code: label.code, template_id: label.template_id });
      tell(t(w.closed));
    } catch (error) {
      tellError(error);
    }
    again();
  };
  const columns: Column<Label>[] = [
    { id: "name", title: t(w.label), width: 40, render: (row) => <Name text={nameOf(row)} /> },
    { id: "value", title: t(w.value), width: 15, isNumber: true, render: (row) => <Name text={row.value} /> },
    { id: "object", title: t(common.object), width: 15, isMinor: true, render: (row) => <Name text={row.object_id} mono /> },
    { id: "since", title: t(w.since), width: 15, isNumber: true, render: (row) => <Age at={row.opened_at} /> },
    {
      id: "close",
      title: t(w.closeIt),
      isTitleHidden: true,
      isNumber: true,
      render: (row) =>
        may("operator") && (
          <button class="small" onClick={() => void close(row)}>
            {t(w.closeIt)}
          </button>
        ),
    },
  ];
  return (
    <Card>
      <Table
        label={t(w.openLabels)}
        columns={columns}
        query=""
        read={(index, size, abort) => page("get_open_retainer_list", { page_index: index, page_size: size }, abort)}
        rowKey={(row) => String(row.id)}
        turn={turn}
        empty={<Empty title={t(w.noLabels)}>{t(w.noLabelsDo)}</Empty>}
      />
    </Card>
  );
}
