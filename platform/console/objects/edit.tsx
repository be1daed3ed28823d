/** An object's record: written anew, changed, removed. */
import { useState } from "preact/hooks";
import type { Fields } from "terrazzo-client";
import { Problem } from "../parts/basics.tsx";
import { Removal, FormDialog, type FormField, type Values } from "../parts/forms.tsx";
import { call, page } from "../shell/api.ts";
import { useLoad } from "../shell/hooks.ts";
import { go, link } from "../shell/routes.ts";
import { tell } from "../shell/toasts.tsx";
import { w as common } from "../words/common.ts";
import { t } from "../words/words.ts";
import { w } from "./edit-words.ts";
import type { ObjectItem } from "./object.tsx";
import { terminalsOf } from "./variables.ts";
import { w as objects } from "./words.ts";

type Options = readonly (readonly [uid: string, name: string])[];

const MOST = 500;
const BY_NAME = { page_size: MOST, order_by: ["name", "asc"] };
const NONE = ["", "–"] as const;

interface Choices {
  mappings: Options;
  controls: Options;
  customers: Options;
}

const optionsOf = (rows: readonly { uid: string; name: string }[]): Options => [NONE, ...rows.map((each) => [each.uid, each.name] as const)];

async function readChoices(abort: AbortSignal): Promise<Choices> {
  const [mappings, controls, customers] = await Promise.all([
    page("get_mapping_list", BY_NAME, abort),
    page("get_control_list", BY_NAME, abort),
    page("get_customer_list", BY_NAME, abort),
  ]);
  return { mappings: optionsOf(mappings.rows), controls: optionsOf(controls.rows), customers: optionsOf(customers.rows) };
}

/** The dialog; without an object, of a new one, to which it goes. */
export function ObjectDialog({ row, onClose, onDone }: { row?: ObjectItem; onClose: () => void; onDone?: () => void }) {
  const { data, error, reload } = useLoad(readChoices, []);
  const [isRemoving, setRemoving] = useState(false);
  const save = async (values: Values): Promise<void> => {
    const fields = { ...values, terminal_list: (values["terminal_list"] ?? "").split(/[\s,]+/).filter(Boolean) };
    if (row) {
      await call("update_object", { ...fields, object_id: String(row.id) } as Fields<"update_object">);
      onClose();
      onDone?.();
    } else {
      const made = await call("create_object", fields as unknown as Fields<"create_object">);
      go(link(["objects", String(made.id)]));
    }
    tell(t(w.saved));
  };
  if (error !== undefined) return <Problem error={error} retry={reload} />;
  if (!data) return null;
  if (row && isRemoving) {
    return (
      <Removal
        name={row.name}
        text={t(w.removeAsk)}
        remove={() => call("delete_object", { object_id: String(row.id) })}
        onDone={() => go(link(["objects"]))}
        onClose={() => setRemoving(false)}
      />
    );
  }
  return (
    <FormDialog
      draft={`object ${row?.uid ?? "new"}`}
      title={row ? t(w.editNamed, { name: row.name }) : t(w.add)}
      submit={t(common.save)}
      initial={row ? { ...valuesOf(row) } : {}}
      fields={fieldsOf(data)}
      onSubmit={save}
      onClose={onClose}
      {...(row ? { more: { title: t(common.remove), onClick: () => setRemoving(true) } } : {})}
    />
  );
}

function fieldsOf({ mappings, controls, customers }: Choices): FormField[] {
  return [
    { name: "name", label: t(common.name), isRequired: true, most: 64 },
    { name: "terminal_list", label: t(w.terminals), kind: "long", hint: t(w.terminalsHint), most: 100_000 },
    { name: "mapping_id", label: t(w.mapping), kind: "choice", options: mappings },
    { name: "control_id", label: t(w.control), kind: "choice", options: controls },
    ...(customers.length > 1 ? [{ name: "customer_id", label: t(w.customer), kind: "choice" as const, options: customers }] : []),
    { name: "model", label: t(objects.model), most: 32 },
    { name: "serial_no", label: t(objects.serial), most: 32 },
    { name: "province", label: t(w.province), most: 16 },
    { name: "city", label: t(w.city), most: 16 },
    { name: "gis", label: t(w.gis), most: 128, hint: t(w.gisHint) },
    { name: "description", label: t(objects.description), most: 255 },
  ];
}

function valuesOf(row: ObjectItem): Values {
  const { name, model, serial_no, province, city, gis, description } = row;
  const ids = { mapping_id: row.mapping_id ?? "", control_id: row.control_id ?? "", customer_id: row.customer_id ?? "" };
  return { name, model, serial_no, province, city, gis, description, ...ids, terminal_list: terminalsOf(row).join("\n") };
}
