/** One customer: who it is, and the objects that name it. */
import { useState } from "preact/hooks";
import type { Result, RowOf } from "terrazzo-client";
import { Card, Empty, Head, Name, Problem, Tag } from "../parts/basics.tsx";
import { type Column, Table } from "../parts/table.tsx";
import { call, may, page } from "../shell/api.ts";
import { useLoad, useTurns } from "../shell/hooks.ts";
import { go, link } from "../shell/routes.ts";
import { tell } from "../shell/toasts.tsx";
import { w as common } from "../words/common.ts";
import { t } from "../words/words.ts";
import { type Customer, CustomerDialog } from "./form.tsx";
import { w } from "./words.ts";

type ObjectRow = RowOf<Result<"get_object_list">>;

const AGAIN_MS = 30_000;

export function CustomerPart({ uid }: { uid: string }) {
  const { data, error, reload } = useLoad((abort) => call("get_customer_item", { uid }, abort), [uid]);
  const [isEditing, setEditing] = useState(false);
  return (
    <>
      <Head name title={data?.name ?? ""} sub={data && <Name text={data.description} />}>
        {data && may("admin") && <button onClick={() => setEditing(true)}>{t(common.edit)}</button>}
        <a class="button" href={link(["customers"])}>
          {t(w.all)}
        </a>
      </Head>
      {error !== undefined && <Problem error={error} retry={reload} />}
      {data && (
        <div class="stack">
          <Facts customer={data} />
          <Objects uid={data.uid} />
        </div>
      )}
      {data && isEditing && (
        <CustomerDialog
          customer={data}
          onClose={() => setEditing(false)}
          onDone={() => {
            setEditing(false);
            tell(t(w.saved));
            reload();
          }}
          onRemoved={() => go(link(["customers"]))}
        />
      )}
    </>
  );
}

function Facts({ customer }: { customer: Customer }) {
  const place = [customer.province, customer.city, customer.address].filter(Boolean).join(", ");
  const responsible = [customer.responsible, customer.responsible_phone].filter(Boolean).join(", ");
  const facts = [
    [w.contact, customer.contact],
    [w.phone, customer.phone],
    [w.mobile, customer.mobile],
    [w.email, customer.email],
    [w.address, place],
    [w.responsible, responsible],
    [w.reference, customer.reference],
  ] as const;
  return (
    <Card title={t(w.customer)}>
      <dl class="facts">
        {facts.map(([title, text]) => (
          <>
            <dt>{t(title)}</dt>
            <dd>{text ? <Name text={text} /> : <span class="dim">{"–"}</span>}</dd>
          </>
        ))}
      </dl>
    </Card>
  );
}

function Objects({ uid }: { uid: string }) {
  const turn = useTurns(AGAIN_MS);
  const columns: Column<ObjectRow>[] = [
    { id: "name", title: t(common.object), width: 60, render: (row) => <a href={link(["objects", String(row.id)])}><Name text={row.name} /></a> },
    { id: "city", title: t(w.city), width: 20, isMinor: true, render: (row) => <Name text={row.city} /> },
    { id: "state", title: t(common.state), width: 20, render: (row) => <Tag kind={row.is_online ? "good" : ""}>{t(row.is_online ? w.online : w.offline)}</Tag> },
  ];
  return (
    <Card title={t(w.objects)}>
      <Table
        label={t(w.theirObjects)}
        columns={columns}
        query={uid}
        read={(index, size, abort) => page("get_object_list", { page_index: index, page_size: size, where_and: [["customer_id", "=", uid]], order_by: ["name", "asc"] }, abort)}
        rowKey={(row) => row.uid}
        turn={turn}
        empty={<Empty title={t(w.noObjects)}>{t(w.noObjectsDo)}</Empty>}
      />
    </Card>
  );
}
