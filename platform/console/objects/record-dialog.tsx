/** Writing a service record: what somebody did to an object. */
import { FormDialog } from "../parts/forms.tsx";
import { send, session } from "../shell/api.ts";
import { tell } from "../shell/toasts.tsx";
import { w as common } from "../words/common.ts";
import { t } from "../words/words.ts";
import { CATEGORIES, w } from "./edit-words.ts";
import type { ObjectItem } from "./object.tsx";
import { w as objects } from "./words.ts";

export function RecordDialog({ row, onClose, onDone }: { row: ObjectItem; onClose: () => void; onDone: () => void }) {
  return (
    <FormDialog
      title={t(w.recordOf, { name: row.name })}
      submit={t(common.save)}
      initial={{ staff_name: (session.value?.username ?? "").slice(0, 32) }}
      fields={[
        { name: "name", label: t(w.what), isRequired: true, most: 64 },
        { name: "category", label: t(w.kind), kind: "choice", options: Object.entries(CATEGORIES).map(([value, word]) => [value, t(word)] as const) },
        { name: "staff_name", label: t(w.staff), most: 32 },
        { name: "description", label: t(objects.description), kind: "long", most: 255 },
      ]}
      onSubmit={async (values) => {
        await send("service/api/v1/service/add", { ...values, object_id: row.id, source: "object" });
        onClose();
        onDone();
        tell(t(w.saved));
      }}
      onClose={onClose}
    />
  );
}
