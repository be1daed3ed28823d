/** The configuration of terminals, written: a new one, or one for all terminals that have it. */
import type { Result } from "terrazzo-client";
import { Problem } from "../parts/basics.tsx";
import { FormDialog, type FormField, type Values } from "../parts/forms.tsx";
import { call, page, session } from "../shell/api.ts";
import { useLoad } from "../shell/hooks.ts";
import { tell } from "../shell/toasts.tsx";
import { w as common } from "../words/common.ts";
import { t } from "../words/words.ts";
import { words as w } from "./bulk-words.ts";
import { w as configs } from "./config-words.ts";
import { w as terminals } from "./words.ts";

type Item = Result<"get_terminal_config_item">;

const MOST_CHARS = 1_000_000;
const FIRMWARE = ["mcu", "lua"] as const; // as campaigns send it

/** Without a `uid`, of a new one. */
export function ConfigDialog({ uid, onClose, onDone }: { uid?: string; onClose: () => void; onDone: () => void }) {
  const { data, error, reload } = useLoad(
    async (abort) => {
      if (!uid) return { item: null, users: 0 };
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
    const { config_script, payload, deliver, ...texts } = values;
    const fields = { ...texts, name: values["name"] ?? "", config_script: config_script || "{}", payload: payload || "{}", deliver: Number(deliver) };
    if (uid && item) {
      const { created_by, last_modified_by, is_available } = item;
      await call("update_terminal_config", { ...fields, uid, created_by, last_modified_by, is_available });
    } else {
      const who = session.value?.id ?? 0;
      await call("create_terminal_config", { ...fields, created_by: who, last_modified_by: who, is_available: 1 });
    }
    onClose();
    onDone();
    tell(t(w.saved));
  };
  return (
    <FormDialog
      draft={`configuration ${item ? uid : "new"}`}
      title={item ? t(w.configNamed, { name: item.name }) : t(configs.add)}
      submit={t(common.save)}
      initial={item ? valuesOf(item) : {}}
      fields={fieldsOf(item ? t(w.configUsers, { n: users }) : t(configs.scriptHint))}
      onSubmit={save}
      onClose={onClose}
    />
  );
}

function fieldsOf(hint: string): FormField[] {
  return [
    { name: "name", label: t(w.name), isRequired: true, most: 64 },
    { name: "description", label: t(terminals.description), most: 255 },
    { name: "hardware", label: t(configs.hardware), most: 64 },
    { name: "config_script", label: t(w.configScript), kind: "long", most: MOST_CHARS, hint },
    { name: "deliver", label: t(w.configDeliver), kind: "switch" },
    ...FIRMWARE.flatMap((unit): FormField[] => [
      { name: `${unit}_version`, label: t(configs.versionOf, { unit: unit.toUpperCase() }), most: 32 },
      { name: `${unit}_file`, label: t(configs.fileOf, { unit: unit.toUpperCase() }), kind: "upload", most: 128, hint: t(configs.fileHint) },
    ]),
    { name: "payload", label: t(configs.payload), kind: "long", most: MOST_CHARS },
  ];
}

/** A structure that says nothing is shown as none. */
function jsonOf(value: unknown): string {
  const isEmpty = !value || (typeof value === "object" && !Object.keys(value).length);
  return isEmpty ? "" : JSON.stringify(value, null, 2);
}

function valuesOf(item: Item): Values {
  const { name, description, hardware, config_script, payload, mcu_version, mcu_file, lua_version, lua_file } = item;
  return { name, description, hardware, mcu_version, mcu_file, lua_version, lua_file, deliver: String(item.deliver), config_script: jsonOf(config_script), payload: jsonOf(payload) };
}
