/** A terminal's record: what it is called, how it logs in, what it may do. */
import type { Fields, Result } from "terrazzo-client";
import { Problem } from "../parts/basics.tsx";
import { FormDialog, type FormField, type Values } from "../parts/forms.tsx";
import { call, page } from "../shell/api.ts";
import { useLoad } from "../shell/hooks.ts";
import { tell } from "../shell/toasts.tsx";
import { w as common } from "../words/common.ts";
import { t } from "../words/words.ts";
import { words as w } from "./bulk-words.ts";
import { w as terminals } from "./words.ts";

type Item = Result<"get_terminal_item">;

const MOST = 500;
const NUMBERS = new Set(["is_available", "is_route", "keep_alive", "session_expiry"]);

export function EditTerminal({ item, onClose, onDone }: { item: Item; onClose: () => void; onDone: () => void }) {
  const { data, error, reload } = useLoad((abort) => page("get_terminal_config_list", { page_size: MOST, order_by: ["name", "asc"] }, abort), []);
  if (error !== undefined) return <Problem error={error} retry={reload} />;
  if (!data) return null;
  return (
    <FormDialog
      draft={`terminal ${item.uid}`}
      title={t(w.editNamed, { name: item.name || item.uid })}
      submit={t(common.save)}
      initial={valuesOf(item)}
      fields={fieldsOf(data.rows)}
      onSubmit={async (values) => {
        await call("update_terminal", { ...unchanged(item), ...sent(values) } as Fields<"update_terminal">);
        onClose();
        onDone();
        tell(t(w.saved));
      }}
      onClose={onClose}
    />
  );
}

function fieldsOf(configurations: readonly { uid: string; name: string }[]): FormField[] {
  return [
    { name: "name", label: t(w.name), isRequired: true, most: 64 },
    { name: "description", label: t(terminals.description), most: 255 },
    { name: "type", label: t(w.type), isRequired: true, most: 16 },
    { name: "config_id", label: t(w.config), kind: "choice", options: configurations.map((each) => [each.uid, each.name] as const) },
    { name: "tags", label: t(w.tags), most: 1_000, hint: t(w.tagsOf) },
    { name: "mode", label: t(w.mode), kind: "choice", options: [["pwd", "pwd"], ["auto", "auto"], ["cert", "cert"]] },
    { name: "username", label: t(w.username), isRequired: true, most: 32 },
    { name: "pin", label: t(w.pin), isRequired: true, most: 16 },
    { name: "access", label: t(terminals.access), kind: "choice", options: [["all", t(w.accessAll)], ["pub", t(w.accessPub)], ["sub", t(w.accessSub)]] },
    { name: "topic", label: t(w.topics), most: 64, hint: t(w.topicsHint) },
    { name: "keep_alive", label: t(w.keepAlive), kind: "number", least: 0, most: 65_535 },
    { name: "session_expiry", label: t(w.sessionExpiry), kind: "number", least: 0 },
    { name: "is_route", label: t(w.isRoute), kind: "switch" },
    { name: "is_available", label: t(w.isAvailable), kind: "switch" },
  ];
}

function valuesOf(item: Item): Values {
  const tags = Array.isArray(item.tags) ? item.tags.map(String) : [];
  const given = Object.entries(item).map(([name, value]) => [name, String(value ?? "")]);
  return { ...Object.fromEntries(given), tags: tags.join(", ") };
}

/** What an update needs, and no field of the form changes. */
function unchanged({ uid, created_by, last_modified_by }: Item): Record<string, unknown> {
  return { uid, created_by, last_modified_by };
}

function sent(values: Values): Record<string, unknown> {
  const all = Object.entries(values).map(([name, value]) => [name, NUMBERS.has(name) ? Number(value || 0) : value]);
  return { ...Object.fromEntries(all), tags: (values["tags"] ?? "").split(",").map((each) => each.trim()).filter(Boolean) };
}
