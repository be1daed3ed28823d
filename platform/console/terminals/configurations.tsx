/** All configurations of terminals: which are sent, and of how many terminals report something else. */
import { useState } from "preact/hooks";
import type { Result, RowOf } from "terrazzo-client";
import { Age, Empty, Head, Name, Tag } from "../parts/basics.tsx";
import { orderBy, RecordList } from "../parts/list.tsx";
import type { Column } from "../parts/table.tsx";
import { may, page } from "../shell/api.ts";
import { useAsked, useLoad } from "../shell/hooks.ts";
import { link } from "../shell/routes.ts";
import { w as common } from "../words/common.ts";
import { t } from "../words/words.ts";
import { ConfigDialog } from "./config-dialog.tsx";
import { Configuration } from "./config-page.tsx";
import { w } from "./config-words.ts";
import { byConfiguration, type Counted } from "./counted.ts";
import { w as terminals } from "./words.ts";

type Config = RowOf<Result<"get_terminal_config_list">>;

const EVERY_MS = 60_000;
const MOST = 1_000; // terminals that are counted

/** One of them where the address names one. */
export function Configurations({ uid }: { uid: string }) {
  return uid ? <Configuration key={uid} uid={uid} /> : <ConfigurationList />;
}

async function counted(state: "differs" | "unreported", abort: AbortSignal): Promise<Counted> {
  const found = await page("get_terminal_list", { configuration: state, page_size: MOST }, abort);
  return byConfiguration(found.rows, found.total);
}

function ConfigurationList() {
  const [turn, setTurn] = useState(0);
  const [total, setTotal] = useState<number | null>(null);
  const [isAdding, setAdding] = useState(false);
  useAsked("add", () => setAdding(may("admin")));
  const counts = useLoad(async (abort) => ({ differs: await counted("differs", abort), unreported: await counted("unreported", abort) }), [turn], EVERY_MS);
  return (
    <>
      <Head title={t(w.title)} sub={total === null ? "" : t(w.sub, { n: total })}>
        <a class="button" href={link(["terminals"])}>
          {t(terminals.back)}
        </a>
        {may("admin") && <button onClick={() => setAdding(true)}>{t(w.add)}</button>}
      </Head>
      {isAdding && <ConfigDialog onClose={() => setAdding(false)} onDone={() => setTurn((n) => n + 1)} />}
      <RecordList
        label={t(w.title)}
        columns={columns(counts.data)}
        order={{ field: "name", isDown: false }}
        read={async (index, size, order, abort) => {
          const found = await page("get_terminal_config_list", { page_index: index, page_size: size, ...orderBy(order) }, abort);
          setTotal(found.total);
          return found;
        }}
        rowKey={(row) => row.uid}
        turn={turn}
        empty={<Empty title={t(w.none)}>{t(w.noneDo)}</Empty>}
      />
    </>
  );
}

function columns(counts: { differs: Counted; unreported: Counted } | undefined): Column<Config>[] {
  const figure = (row: Config, state: "differs" | "unreported") => {
    const of = counts?.[state];
    const n = of?.counts.get(row.uid) ?? 0;
    if (!row.deliver || !of) return <span class="dim">{"–"}</span>;
    if (!n) return of.isCut ? <span class="dim">{"?"}</span> : "0";
    return <a href={link(["terminals"], { config: row.uid, compared: state })}>{of.isCut ? t(w.atLeast, { n }) : n.toLocaleString()}</a>;
  };
  return [
    { id: "name", title: t(common.name), sort: "name", width: 30, render: (row) => <a href={link(["terminals"], { configurations: row.uid })}><Name text={row.name || row.uid} /></a> },
    { id: "deliver", title: t(w.delivery), sort: "deliver", width: 12, render: (row) => <Tag kind={row.deliver ? "info" : ""}>{t(row.deliver ? w.isSent : w.isNotSent)}</Tag> },
    { id: "differs", title: t(w.differing), width: 13, isNumber: true, render: (row) => figure(row, "differs") },
    { id: "unreported", title: t(w.unreported), width: 12, isNumber: true, isMinor: true, render: (row) => figure(row, "unreported") },
    { id: "hardware", title: t(w.hardware), width: 14, isMinor: true, render: (row) => <Name text={row.hardware} /> },
    { id: "firmware", title: t(w.firmware), width: 10, isMinor: true, render: (row) => <Name text={row.mcu_version} mono /> },
    { id: "changed", title: t(w.changed), isNumber: true, isMinor: true, render: (row) => <Age at={row.last_modified} /> },
  ];
}
