/** A customer's record as it is written. */
import { useState } from "preact/hooks";
import type { Fields, Result } from "terrazzo-client";
import { Removal, FormDialog, type FormField, type Values } from "../parts/forms.tsx";
import { call } from "../shell/api.ts";
import { w as common } from "../words/common.ts";
import { t } from "../words/words.ts";
import { w } from "./words.ts";

export type Customer = Result<"get_customer_item">;

interface Props {
  /** Null: a new one. */
  customer: Customer | null;
  onClose: () => void;
  onDone: (uid: string) => void;
  onRemoved?: () => void;
}

export function CustomerDialog({ customer, onClose, onDone, onRemoved }: Props) {
  const [isRemoving, setRemoving] = useState(false);
  const save = async (values: Values): Promise<void> => {
    if (customer) await call("update_customer", { ...values, uid: customer.uid, id: customer.id } as unknown as Fields<"update_customer">);
    onDone(customer ? customer.uid : (await call("create_customer", values as unknown as Fields<"create_customer">)).uid);
  };
  if (customer && isRemoving) {
    return (
      <Removal
        name={customer.name}
        text={t(w.removeAsk)}
        remove={() => call("delete_customer", { uid: customer.uid })}
        onDone={() => onRemoved?.()}
        onClose={() => setRemoving(false)}
      />
    );
  }
  return (
    <FormDialog
      draft={`customer ${customer?.uid ?? "new"}`}
      title={customer ? t(w.editNamed, { name: customer.name.slice(0, 64) }) : t(w.add)}
      submit={t(common.save)}
      fields={fields()}
      initial={customer ? Object.fromEntries(fields().map(({ name }) => [name, String(customer[name as keyof Customer] ?? "")])) : {}}
      onSubmit={save}
      onClose={onClose}
      {...(customer ? { more: { title: t(common.remove), onClick: () => setRemoving(true) } } : {})}
    />
  );
}

function fields(): FormField[] {
  return [
    { name: "name", label: t(common.name), isRequired: true, most: 64 },
    { name: "contact", label: t(w.contact), most: 64 },
    { name: "phone", label: t(w.phone), most: 32 },
    { name: "mobile", label: t(w.mobile), most: 32 },
    { name: "email", label: t(w.email), kind: "email", most: 128 },
    { name: "province", label: t(w.province), most: 64 },
    { name: "city", label: t(w.city), most: 64 },
    { name: "address", label: t(w.address), most: 255 },
    { name: "responsible", label: t(w.responsible), most: 64 },
    { name: "responsible_phone", label: t(w.responsiblePhone), most: 32 },
    { name: "reference", label: t(w.reference), most: 64 },
    { name: "description", label: t(w.description), most: 255 },
  ];
}
