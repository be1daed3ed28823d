/** What is done with many terminals at once: those that are chosen, or all that the filter finds, which are counted before. */
import { useState } from "preact/hooks";
import type { Fields } from "terrazzo-client";
import { Ask, FormDialog, type Values } from "../parts/forms.tsx";
import { call, may, page } from "../shell/api.ts";
import { useLoad } from "../shell/hooks.ts";
import { tell, tellError } from "../shell/toasts.tsx";
import { w as common } from "../words/common.ts";
import { t } from "../words/words.ts";
import { words as bw } from "./bulk-words.ts";
import { words as service } from "./service-words.ts";
import { ServiceDialog } from "./service.tsx";

/** Terminals that may be named in one request. */
export const MOST_NAMED = 1_000;
const MOST_CONFIGURATIONS = 200;

type Doing = "enable" | "disable" | "tag" | "config" | "remove";
/** Which: by name, or by what the list filters by, of which a dry run has found so many. */
type Which = { uids: string[] } | { filter: Fields<"get_terminal_list">; expected: number };

interface Props {
  chosen: ReadonlySet<string>;
  filter: Fields<"get_terminal_list">;
  total: number;
  onNone: () => void;
  onDone: () => void;
}

const TITLES = { enable: bw.enable, disable: bw.disable, tag: bw.tag, config: bw.config, remove: common.remove };

export function Bulk({ chosen, filter, total, onNone, onDone }: Props) {
  const [isAll, setAll] = useState(false);
  const [isOut, setOut] = useState(false);
  const [asked, setAsked] = useState<{ doing: Doing; which: Which; n: number } | null>(null);
  if (!chosen.size) return null;
  const ask = async (doing: Doing) => {
    try {
      setAsked(isAll ? await counted(doing, filter) : { doing, which: { uids: [...chosen] }, n: chosen.size });
    } catch (error) {
      tellError(error);
    }
  };
  const submit = async (values: Values) => {
    if (!asked) return;
    const done = await handle(asked.doing, asked.which, values);
    tell(t(bw.done, { n: done.changed, same: done.unchanged }));
    setAsked(null);
    setAll(false);
    onDone();
  };
  const n = isAll ? total : chosen.size;
  return (
    <div class="bulk" role="toolbar" aria-label={t(bw.chosen, { n })}>
      <span>{t(bw.chosen, { n })}</span>
      {may("admin") && total > chosen.size && (
        <label class="line">
          <input type="checkbox" checked={isAll} onChange={(event) => setAll(event.currentTarget.checked)} />
          {t(bw.all, { n: total })}
        </label>
      )}
      {!isAll && <button onClick={() => setOut(true)}>{t(service.out)}</button>}
      {(may("admin") ? (Object.keys(TITLES) as Doing[]) : []).map((each) => (
        <button key={each} class={each === "remove" ? "danger" : ""} onClick={() => void ask(each)}>
          {t(TITLES[each])}
        </button>
      ))}
      <button class="plain" onClick={onNone}>
        {t(bw.none)}
      </button>
      {isOut && (
        <ServiceDialog
          uids={[...chosen]}
          onDone={() => {
            setOut(false);
            onDone();
          }}
          onClose={() => setOut(false)}
        />
      )}
      {asked && <Dialog asked={asked} onSubmit={submit} onClose={() => setAsked(null)} />}
    </div>
  );
}

function Dialog({ asked, onSubmit, onClose }: { asked: { doing: Doing; n: number }; onSubmit: (values: Values) => Promise<void>; onClose: () => void }) {
  const { doing, n } = asked;
  const title = `${t(TITLES[doing])}: ${t(bw.terminals, { n })}`;
  const { data } = useLoad((abort) => (doing === "config" ? page("get_terminal_config_list", { page_size: MOST_CONFIGURATIONS }, abort) : Promise.resolve(null)), [doing]);
  if (doing === "tag") {
    return <FormDialog draft="terminals tag" title={title} submit={t(bw.tag)} fields={[{ name: "tags", label: t(bw.tags), hint: t(bw.tagsHint) }]} onSubmit={onSubmit} onClose={onClose} />;
  }
  if (doing === "config") {
    if (!data) return null;
    const options = data.rows.map((each) => [String(each.uid), String(each.name)] as const);
    return <FormDialog draft="terminals configuration" title={title} submit={t(bw.config)} fields={[{ name: "config_id", label: t(bw.config), kind: "choice", options }]} onSubmit={onSubmit} onClose={onClose} />;
  }
  const text = t({ enable: bw.enableAsk, disable: bw.disableAsk, remove: bw.removeAsk }[doing]);
  return <Ask title={title} text={text} action={t(TITLES[doing])} isDangerous={doing === "remove"} onYes={() => onSubmit({})} onClose={onClose} />;
}

/** A dry run says how many the filter finds; the same number is expected when it is done. */
async function counted(doing: Doing, filter: Fields<"get_terminal_list">): Promise<{ doing: Doing; which: Which; n: number }> {
  const conditions = { ...(filter as Record<string, unknown>) };
  delete conditions["order_by"];
  const dry = { filter: conditions, dry_run: 1 } as object;
  const found = doing === "remove" ? await call("delete_terminals", dry as Fields<"delete_terminals">) : await call("update_terminals", { ...dry, is_available: 1 } as Fields<"update_terminals">);
  return { doing, which: { filter: conditions as Fields<"get_terminal_list">, expected: found.found }, n: found.found };
}

function handle(doing: Doing, which: Which, values: Values) {
  if (doing === "remove") return call("delete_terminals", which as Fields<"delete_terminals">);
  const changes = {
    enable: { is_available: 1 },
    disable: { is_available: 0 },
    tag: { tags: (values["tags"] ?? "").split(",").map((each) => each.trim()).filter(Boolean) },
    config: { config_id: values["config_id"] ?? "" },
  }[doing];
  return call("update_terminals", { ...which, ...changes } as Fields<"update_terminals">);
}
