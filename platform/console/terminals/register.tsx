/** Adding a terminal, or one that has tried already: only the uid has to be known. */
import { useState } from "preact/hooks";
import { FormDialog, ShownOnce, type Values } from "../parts/forms.tsx";
import { call, page } from "../shell/api.ts";
import { useLoad } from "../shell/hooks.ts";
import { go, link } from "../shell/routes.ts";
import { tell } from "../shell/toasts.tsx";
import { t } from "../words/words.ts";
import { words as w } from "./bulk-words.ts";
import { w as terminals } from "./words.ts";

const MOST = 200;

export function Register({ uid, onClose }: { uid?: string; onClose: () => void }) {
  const [made, setMade] = useState<{ uid: string; text: string } | null>(null);
  const { data } = useLoad((abort) => page("get_terminal_config_list", { page_size: MOST }, abort), []);
  const submit = async (values: Values) => {
    const { config_id: config, name, ...rest } = values;
    const found = await call("register_terminal", { ...rest, uid: values["uid"] ?? "", ...(name ? { name } : {}), ...(config ? { config_id: config } : {}) });
    tell(t(w.created, { uid: found.uid }));
    setMade({ uid: found.uid, text: `client id: ${found.uid}\nusername: ${found.username}\npassword: ${found.pin}` });
  };
  const close = () => {
    onClose();
    if (made) go(link(["terminals", made.uid], { tab: "connect" }));
  };
  if (made) return <ShownOnce title={t(w.login, { uid: made.uid })} text={made.text} onClose={close} />;
  if (!data) return null;
  const configurations = [["", "–"] as const, ...data.rows.map((each) => [String(each.uid), String(each.name)] as const)];
  return (
    <FormDialog
      draft={`terminal ${uid ? `register ${uid}` : "new"}`}
      title={uid ? t(w.registerAsk, { uid: uid.slice(0, 64) }) : t(w.create)}
      submit={t(w.register)}
      initial={{ uid: uid ?? "", mode: "pwd", type: "Other" }}
      fields={[
        { name: "uid", label: t(terminals.uid), isRequired: true, most: 64, hint: t(w.uidHint) },
        { name: "name", label: t(w.name), most: 64 },
        { name: "config_id", label: t(w.config), kind: "choice", options: configurations },
        { name: "mode", label: t(w.mode), kind: "choice", options: [["pwd", "pwd"], ["auto", "auto"]] },
      ]}
      onSubmit={submit}
      onClose={onClose}
    />
  );
}
