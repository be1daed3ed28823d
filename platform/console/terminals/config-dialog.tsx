/** The configuration of a terminal: what it should be, for all terminals that have it. */
import { Problem } from "../parts/basics.tsx";
import { FormDialog, type Values } from "../parts/forms.tsx";
import { call, page } from "../shell/api.ts";
import { useLoad } from "../shell/hooks.ts";
import { tell } from "../shell/toasts.tsx";
import { w as common } from "../words/common.ts";
import { t } from "../words/words.ts";
import { words as w } from "./bulk-words.ts";
import { w as terminals } from "./words.ts";

const MOST_CHARS = 1_000_000;

export function ConfigDialog({ uid, onClose, onDone }: { uid: string; onClose: () => void; onDone: () => void }) {
  const { data, error, reload } = useLoad(
    async (abort) => {
      const [item, users] = await Promise.all([
        call("get_terminal_config_item", { uid }, abort),
        page("get_terminal_list", { where_and: [["config_id", "=", uid]], page_size: 1 }, abort),
      ]);
      return { item, users: users.total };
    },
    [uid],
  );
  if (error !== undefined) return <Problem error={error} retry={reload} />;
  if (!data) return null;
  const { item, users } = data;
  const save = async (values: Values): Promise<void> => {
    const { created_by, last_modified_by, is_available } = item;
    const { name = "", description = "", config_script = "", deliver } = values;
    await call("update_terminal_config", { uid, created_by, last_modified_by, is_available, name, description, config_script, deliver: Number(deliver) });
    onClose();
    onDone();
    tell(t(w.saved));
  };
  return (
    <FormDialog
      title={t(w.configNamed, { name: item.name })}
      submit={t(common.save)}
      initial={{ name: item.name, description: item.description, deliver: String(item.deliver), config_script: JSON.stringify(item.config_script, null, 2) }}
      fields={[
        { name: "name", label: t(w.name), isRequired: true, most: 64 },
        { name: "description", label: t(terminals.description), most: 255 },
        { name: "config_script", label: t(w.configScript), kind: "long", most: MOST_CHARS, hint: t(w.configUsers, { n: users }) },
        { name: "deliver", label: t(w.configDeliver), kind: "switch" },
      ]}
      onSubmit={save}
      onClose={onClose}
    />
  );
}
