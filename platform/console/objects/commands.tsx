/** Commands of an object: those of its control table, and the last that were sent. */
import { useState } from "preact/hooks";
import type { Result, RowOf } from "terrazzo-client";
import { Sending } from "../commands/sending.tsx";
import { CommandReason, CommandState } from "../commands/state.tsx";
import { Age, Card, Name, Problem } from "../parts/basics.tsx";
import { call, may, page, sendCommand } from "../shell/api.ts";
import { useLive, useLoad } from "../shell/hooks.ts";
import { w as common } from "../words/common.ts";
import { language, t } from "../words/words.ts";
import type { ObjectItem } from "./object.tsx";
import { type ObjectVariable, shownValue, terminalsOf, type Value } from "./variables.ts";
import { w } from "./words.ts";

type Journaled = RowOf<Result<"get_command_list">>;

/** A row of a control table. */
interface Control {
  code: string;
  name: string;
  point: string;
  value: string;
  /** The variable that is made of the same point: what it is now. */
  present: ObjectVariable | undefined;
}

const LAST = 5;

export function Commands({ row, variables }: { row: ObjectItem; variables: ObjectVariable[] }) {
  const [chosen, setChosen] = useState<Control | null>(null);
  const tables = useLoad(
    async (abort) => {
      if (!row.control_id) return null;
      const control = await call("get_control_item", { uid: row.control_id }, abort);
      const mapping = row.mapping_id ? await call("get_mapping_item", { uid: row.mapping_id }, abort) : null;
      return { control: control.script as string[][], mapping: (mapping?.script ?? []) as unknown[][] };
    },
    [row.control_id, row.mapping_id],
  );
  const found = tables.data;
  const controls = found ? found.control.map((each) => controlOf(each, found.mapping, variables)) : [];
  return (
    <Card class="span4" title={t(w.commands)}>
      {tables.error !== undefined && <Problem error={tables.error} retry={tables.reload} />}
      {found === null && <p class="dim">{t(w.noControl)}</p>}
      {!may("operator") && controls.length > 0 && <p class="dim">{t(common.needsRole, { role: t(common.operator) })}</p>}
      <ul class="controls">
        {controls.map((each) => (
          <li key={each.code}>
            <Name text={each.name} />
            <span class="dim">
              <Present control={each} />
            </span>
            {may("operator") && (
              <button class="small" onClick={() => setChosen(each)}>
                {t(common.send)}
              </button>
            )}
          </li>
        ))}
      </ul>
      <Last row={row} />
      {chosen && (
        <Sending
          draft={`${row.uid} ${chosen.code}`}
          title={t(w.sendTo, { name: chosen.name, object: row.name })}
          name={chosen.name}
          value={chosen.value}
          isValueAsked
          present={chosen.present && <PresentLine control={chosen} />}
          isAway={!row.is_online}
          terminals={terminalsOf(row)}
          frames={{ kinds: ["command"], object_id: String(row.id) }}
          send={(value, key) => sendCommand("publish_object_command", { object_id: String(row.id), command: chosen.code, value, idempotency_key: key })}
          onClose={() => setChosen(null)}
        />
      )}
    </Card>
  );
}

function controlOf(cells: string[], mapping: unknown[][], variables: ObjectVariable[]): Control {
  const [code = "", english = "", chinese = "", , point = "", value = ""] = cells.map(String);
  const code_ = mapping.find((each) => each.includes(point) && each[3] === "STA")?.[0];
  const [first, second] = language.value === "zh" ? [chinese, english] : [english, chinese];
  return { code, name: first || second || code, point, value, present: variables.find((each) => each.code === code_) };
}

function Present({ control }: { control: Control }) {
  const { present } = control;
  if (!present) return null;
  return <Name text={`${shownValue(present, present.value as Value)}${present.unit ? ` ${present.unit}` : ""}`} />;
}

function PresentLine({ control }: { control: Control }) {
  return (
    <p>
      <span class="dim">{t(w.present)}</span> <Present control={control} /> {control.present && <>(<Age at={control.present.time} />)</>}
    </p>
  );
}

function Last({ row }: { row: ObjectItem }) {
  const uid = terminalsOf(row)[0];
  const found = useLoad(
    async (abort) => {
      const lists = await Promise.all(terminalsOf(row).slice(0, 8).map((each) => page("get_command_list", { terminal_id: each, page_size: 20 }, abort)));
      const own = lists.flatMap((each) => each.rows).filter((each) => String(each.object_id) === String(row.id));
      return own.sort((a, b) => b.id - a.id).slice(0, LAST);
    },
    [row.id, uid],
  );
  useLive({ kinds: ["command"], object_id: String(row.id) }, found.reload, found.reload);
  if (!found.data?.length) return null;
  return (
    <>
      <h3>{t(w.lastCommands)}</h3>
      <ul class="controls">
        {found.data.map((each) => (
          <li key={each.uid}>
            <Name text={each.value ? `${each.command} = ${each.value}` : each.command} />
            <span class="dim">
              <Age at={each.queued} />
            </span>
            <State row={each} />
          </li>
        ))}
      </ul>
    </>
  );
}

function State({ row }: { row: Pick<Journaled, "state" | "reason"> }) {
  return (
    <span>
      <CommandState state={row.state} />{" "}
      <span class="dim">
        <CommandReason reason={row.reason} />
      </span>
    </span>
  );
}
