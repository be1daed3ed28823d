/** The broker: who is connected, who subscribes to what, what is retained, who is too slow, bridges; rates for super users. */
import type { Result, RowOf } from "terrazzo-client";
import { Age, Empty, Head, Name, Tag } from "../parts/basics.tsx";
import { Ask } from "../parts/forms.tsx";
import { RecordList, Tabs, useDialogs } from "../parts/list.tsx";
import type { Column } from "../parts/table.tsx";
import { call, may, page, session } from "../shell/api.ts";
import { titles } from "../shell/pages.ts";
import { useTurns } from "../shell/hooks.ts";
import { link, replaceQuery, route } from "../shell/routes.ts";
import { w as common } from "../words/common.ts";
import { t } from "../words/words.ts";
import { Bridges } from "./bridges.tsx";
import { Now } from "./now.tsx";
import { w } from "./words.ts";

const EVERY_MS = 10_000; // no live frame tells of clients

type Client = RowOf<Result<"get_client_list">>;
type Subscription = RowOf<Result<"get_subscription_list">>;
type Retained = RowOf<Result<"get_retained_list">>;

export function Page() {
  const isSuper = !!session.value?.is_super;
  const all = [
    { id: "clients", title: w.clients, isSeen: true, show: Clients },
    { id: "subscriptions", title: w.subscriptions, isSeen: true, show: Subscriptions },
    { id: "retained", title: w.retained, isSeen: true, show: RetainedMessages },
    { id: "now", title: w.now, isSeen: isSuper, show: Now },
    { id: "bridges", title: w.bridges, isSeen: isSuper, show: Bridges },
  ].filter((each) => each.isSeen);
  const shown = all.find((each) => each.id === route.value.path[0]) ?? all[0];
  const Shown = shown?.show;
  return (
    <>
      <Head title={t(titles.broker)} />
      <Tabs label={t(titles.broker)} base="broker" tabs={all.map((each) => [each.id, t(each.title)] as const)} />
      {Shown && <Shown key={shown.id} />}
    </>
  );
}

/** One terminal's alone, and those alone that are too slow. */
function Filters() {
  return (
    <>
      <input type="search" class="mono" aria-label={t(w.ofTerminal)} placeholder={t(w.ofTerminal)} maxLength={128} value={route.value.query.get("terminal") ?? ""} onChange={(event) => replaceQuery({ terminal: event.currentTarget.value.trim() })} />
      <Slow />
    </>
  );
}

function filtersOf(): { slow: number; terminal_id?: string } {
  const { query } = route.value;
  const uid = query.get("terminal");
  return { slow: query.get("slow") ? 1 : 0, ...(uid ? { terminal_id: uid } : {}) };
}

function Slow() {
  return (
    <label class="line">
      <input type="checkbox" checked={!!route.value.query.get("slow")} onChange={(event) => replaceQuery({ slow: event.currentTarget.checked ? "1" : "" })} />
      {t(w.slow)}
    </label>
  );
}

function Nothing({ wanted, title, todo }: { wanted: { slow: number; terminal_id?: string }; title: string; todo: string }) {
  if (wanted.slow) return <Empty title={t(w.noSlow)}>{t(w.noSlowDo)}</Empty>;
  return wanted.terminal_id ? <Empty title={t(common.nothing)}>{t(w.notOf)}</Empty> : <Empty title={title}>{todo}</Empty>;
}

function TerminalName({ uid }: { uid: string }) {
  return (
    <a href={link(["terminals", uid])}>
      <Name text={uid} mono />
    </a>
  );
}

function Clients() {
  const { dialog, open, close, done, turn } = useDialogs<Client>();
  const turns = useTurns(EVERY_MS);
  const wanted = filtersOf();
  const columns: Column<Client>[] = [
    { id: "client", title: t(w.client), width: 22, render: (row) => <TerminalName uid={row.client_id} /> },
    { id: "protocol", title: t(w.protocol), width: 12, isMinor: true, render: (row) => row.protocol },
    { id: "address", title: t(w.address), width: 18, isMinor: true, render: (row) => <Name text={`${row.address}:${row.port}`} mono /> },
    { id: "since", title: t(w.since), width: 10, isNumber: true, isMinor: true, render: (row) => <Age at={row.since} /> },
    { id: "heard", title: t(w.heard), width: 9, isNumber: true, render: (row) => <Age at={row.last_seen} /> },
    { id: "in", title: t(w.in), width: 8, isNumber: true, isMinor: true, render: (row) => row.messages_in.toLocaleString() },
    { id: "out", title: t(w.out), width: 8, isNumber: true, isMinor: true, render: (row) => row.messages_out.toLocaleString() },
    { id: "dropped", title: t(w.dropped), width: 9, isNumber: true, render: (row) => (row.messages_dropped ? <Tag kind="warn">{row.messages_dropped.toLocaleString()}</Tag> : "0") },
    {
      id: "do",
      title: t(w.end),
      isTitleHidden: true,
      isNumber: true,
      render: (row) =>
        may("admin") && (
          <button class="small" aria-label={t(w.endIt, { name: row.client_id.slice(0, 80) })} onClick={() => open(row)}>
            {t(w.end)}
          </button>
        ),
    },
  ];
  return (
    <>
      <RecordList
        label={t(w.clients)}
        columns={columns}
        query={JSON.stringify(wanted)}
        read={(index, size, _, abort) => page("get_client_list", { page_index: index, page_size: size, ...wanted }, abort)}
        rowKey={(row) => row.client_id}
        turn={turn + turns}
        tools={<Filters />}
        empty={<Nothing wanted={wanted} title={t(w.noClients)} todo={t(w.noClientsDo)} />}
      />
      {dialog && (
        <Ask
          title={t(w.endIt, { name: dialog.client_id.slice(0, 64) })}
          text={t(w.endAsk)}
          action={t(w.end)}
          isDangerous
          onYes={async () => {
            await call("kick_client", { client_id: dialog.client_id });
            done(t(w.ended));
          }}
          onClose={close}
        />
      )}
    </>
  );
}

function Subscriptions() {
  const turns = useTurns(EVERY_MS);
  const wanted = filtersOf();
  const columns: Column<Subscription>[] = [
    { id: "client", title: t(w.client), width: 26, render: (row) => <TerminalName uid={row.client_id} /> },
    { id: "filter", title: t(w.filter), width: 34, render: (row) => <Name text={row.filter} mono /> },
    { id: "qos", title: t(w.qos), width: 8, isNumber: true, isMinor: true, render: (row) => row.qos },
    { id: "waits", title: t(w.waits), width: 12, isNumber: true, render: (row) => (row.queued ? <Tag kind="warn">{row.queued.toLocaleString()}</Tag> : "0") },
    { id: "state", title: t(common.state), width: 14, isNumber: true, render: (row) => t(row.online ? w.online : w.offline) },
  ];
  return (
    <RecordList
      label={t(w.subscriptions)}
      columns={columns}
      query={JSON.stringify(wanted)}
      read={(index, size, _, abort) => page("get_subscription_list", { page_index: index, page_size: size, ...wanted }, abort)}
      rowKey={(row) => `${row.client_id}\n${row.filter}`}
      turn={turns}
      tools={<Filters />}
      empty={<Nothing wanted={wanted} title={t(w.noSubscriptions)} todo={t(w.noSubscriptionsDo)} />}
    />
  );
}

function RetainedMessages() {
  const turns = useTurns(EVERY_MS);
  const filter = route.value.query.get("filter") ?? "";
  const columns: Column<Retained>[] = [
    { id: "topic", title: t(w.topic), width: 44, render: (row) => <Name text={row.topic} mono /> },
    { id: "bytes", title: t(w.bytes), width: 10, isNumber: true, render: (row) => row.bytes.toLocaleString() },
    { id: "qos", title: t(w.qos), width: 8, isNumber: true, isMinor: true, render: (row) => row.qos },
    { id: "from", title: t(w.publisher), width: 20, isMinor: true, render: (row) => <Name text={row.publisher} mono /> },
    { id: "expires", title: t(w.expires), width: 18, isNumber: true, isMinor: true, render: (row) => row.expires ?? "" },
  ];
  return (
    <RecordList
      label={t(w.retained)}
      columns={columns}
      query={filter}
      read={(index, size, _, abort) => page("get_retained_list", { page_index: index, page_size: size, ...(filter ? { filter } : {}) }, abort)}
      rowKey={(row) => `${row.permission_company_id}\n${row.topic}`}
      turn={turns}
      tools={
        <label class="grow">
          <span class="sr">{t(w.filter)}</span>
          <input type="search" class="mono" maxLength={1024} placeholder="g/+/r" value={filter} onChange={(event) => replaceQuery({ filter: event.currentTarget.value.trim() })} />
        </label>
      }
      empty={<Empty title={t(w.noRetained)}>{t(w.noRetainedDo)}</Empty>}
    />
  );
}
