/** Rules: started, stopped, written; one is also made of an event that somebody looks at. */
import { useEffect } from "preact/hooks";
import type { Result, RowOf } from "terrazzo-client";
import { Empty, Name, Tag } from "../parts/basics.tsx";
import { FormDialog, Removal, type Values } from "../parts/forms.tsx";
import { orderBy, RecordList, useDialogs } from "../parts/list.tsx";
import type { Column } from "../parts/table.tsx";
import { call, may, page } from "../shell/api.ts";
import { useAsked } from "../shell/hooks.ts";
import { replaceQuery, route } from "../shell/routes.ts";
import { tellError } from "../shell/toasts.tsx";
import { w as common } from "../words/common.ts";
import { t } from "../words/words.ts";
import { CHANNELS, fieldsOf, initialOf, KINDS, sentOf } from "./form.ts";
import { w } from "./words.ts";

export type Rule = RowOf<Result<"get_rule_list">>;
type Doing = { kind: "add"; initial: Values } | { kind: "edit" | "remove"; rule: Rule };

export function Rules() {
  const { dialog, open, close, done, gone, turn } = useDialogs<Doing>();
  useAsked("add", () => may("admin") && open({ kind: "add", initial: {} }));
  const { query, path } = route.value;
  useEffect(() => {
    const kind = query.get("new");
    if (kind && may("admin")) {
      const [code, object, severity] = [query.get("code"), query.get("object"), query.get("severity")];
      open({ kind: "add", initial: { kinds: kind, codes: code ?? "", object_list: object ?? "", severity: severity ?? "" } });
      replaceQuery({ new: "", code: "", object: "", severity: "" });
    }
  }, [query]);
  useEffect(() => {
    if (!path[0] || path[0] === "rules" || !may("admin")) return;
    call("get_rule_item", { uid: path[0] }).then((rule) => open({ kind: "edit", rule }), tellError);
  }, [path[0]]);
  const toggle = async (rule: Rule) => {
    try {
      await call(rule.is_active ? "stop_rule" : "start_rule", { uid: rule.uid });
      done(t(rule.is_active ? w.stoppedNow : w.started));
    } catch (error) {
      tellError(error);
    }
  };
  const submit = async (values: Values) => {
    if (dialog?.kind === "edit") await call("update_rule", { ...sentOf(values), uid: dialog.rule.uid });
    else await call("create_rule", sentOf(values) as Parameters<typeof call<"create_rule">>[1]);
    done(t(w.saved));
  };
  return (
    <>
      <RecordList
        label={t(w.rules)}
        columns={columns((rule) => void toggle(rule), (kind, rule) => open({ kind, rule }))}
        order={{ field: "name", isDown: false }}
        read={(index, size, order, abort) => page("get_rule_list", { page_index: index, page_size: size, ...orderBy(order) }, abort)}
        rowKey={(row) => row.uid}
        turn={turn}
        tools={may("admin") && <button onClick={() => open({ kind: "add", initial: {} })}>{t(w.add)}</button>}
        empty={<Empty title={t(w.none)}>{t(w.noneDo)}</Empty>}
      />
      {dialog && dialog.kind !== "remove" && (
        <FormDialog
          draft={`rule ${dialog.kind === "add" ? `new ${Object.values(dialog.initial).join(" ")}` : dialog.rule.uid}`}
          title={dialog.kind === "add" ? t(w.add) : t(w.edit, { name: dialog.rule.name.slice(0, 64) })}
          submit={t(common.save)}
          fields={fieldsOf(dialog.kind === "edit" ? dialog.rule : null)}
          initial={dialog.kind === "add" ? { kinds: "event", channel: "email", minutes: "5", repeat_s: "0", repeat_times: "0", ...dialog.initial } : initialOf(dialog.rule)}
          onSubmit={submit}
          onClose={close}
        />
      )}
      {dialog?.kind === "remove" && (
        <Removal
          name={dialog.rule.name}
          title={t(w.remove, { name: dialog.rule.name.slice(0, 64) })}
          text={t(w.removeAsk)}
          remove={() => call("delete_rule", { uid: dialog.rule.uid })}
          onDone={gone}
          onClose={close}
        />
      )}
    </>
  );
}

function columns(toggle: (rule: Rule) => void, open: (kind: "edit" | "remove", rule: Rule) => void): Column<Rule>[] {
  const tells = (rule: Rule) => {
    const kinds = (rule.kinds as string[]).join(",");
    const known = KINDS.find(([value]) => value === kinds);
    return known ? t(known[1]) : t(w.other, { kinds });
  };
  return [
    { id: "name", title: t(w.rule), sort: "name", width: 22, render: (row) => <Name text={row.name} /> },
    { id: "tells", title: t(w.tells), width: 22, render: tells },
    { id: "channel", title: t(w.channel), width: 9, isMinor: true, render: (row) => t(CHANNELS.find(([value]) => value === row.channel)?.[1] ?? [row.channel, row.channel]) },
    { id: "to", title: t(w.to), width: 13, isMinor: true, render: (row) => <Name text={((row.recipients as string[] | null) ?? []).join(", ")} /> },
    { id: "state", title: t(common.state), width: 10, render: (row) => <Tag kind={row.is_active ? "good" : ""}>{t(row.is_active ? w.running : w.stopped)}</Tag> },
    {
      id: "do",
      title: t(common.edit),
      isTitleHidden: true,
      isNumber: true,
      render: (row) =>
        may("admin") && (
          <>
            <button class="small" aria-label={`${t(row.is_active ? w.stop : w.start)} ${row.name}`.slice(0, 100)} onClick={() => toggle(row)}>
              {t(row.is_active ? w.stop : w.start)}
            </button>{" "}
            <button class="small" aria-label={`${t(common.edit)} ${row.name}`.slice(0, 100)} onClick={() => open("edit", row)}>
              {t(common.edit)}
            </button>{" "}
            <button class="small" aria-label={t(w.remove, { name: row.name.slice(0, 80) })} onClick={() => open("remove", row)}>
              {t(common.remove)}
            </button>
          </>
        ),
    },
  ];
}
