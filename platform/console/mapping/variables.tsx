/** Units, decimals, ranges and names of states of a mapping's variables, by code. */
import { useState } from "preact/hooks";
import { Card, Empty, Name } from "../parts/basics.tsx";
import { t } from "../words/words.ts";
import type { Draft, Said } from "./editing.ts";
import { partText } from "./rows.ts";
import { readStates, type States, statesText } from "./states.ts";
import { w } from "./words.ts";

interface Props {
  draft: Draft;
  isFixed: boolean;
  onChange: (how: (variables: Draft["variables"]) => Draft["variables"], key: string) => void;
}

export function VariableTable({ draft, isFixed, onChange }: Props) {
  const rows = draft.rows.filter((row) => partText(row, "kind") !== "EVNT" && partText(row, "code").trim());
  const set = (code: string, change: Said, key: string): void => {
    onChange((variables) => ({ ...variables, [code]: { ...variables[code], ...change } }), `${code} ${key}`);
  };
  return (
    <Card>
      <p class="dim variables-are">{t(w.variablesAre)}</p>
      {!rows.length && <Empty title={t(w.noVariables)}>{t(w.noVariablesDo)}</Empty>}
      {rows.length > 0 && (
        <div class="scroll grid-box" role="region" aria-label={t(w.variables)} tabIndex={0}>
          <table class="cells said">
            <thead>
              <tr>
                {[w.code, w.english, w.unit, w.decimals, w.low, w.high, w.states].map((title) => (
                  <th key={title[0]} scope="col">
                    {t(title)}
                  </th>
                ))}
              </tr>
            </thead>
            <tbody>
              {rows.map((row) => {
                const code = partText(row, "code").trim();
                return <Line key={code} code={code} label={partText(row, "english") || partText(row, "chinese")} said={draft.variables[code] ?? {}} isFixed={isFixed} onSet={(change, key) => set(code, change, key)} />;
              })}
            </tbody>
          </table>
        </div>
      )}
    </Card>
  );
}

interface LineProps {
  code: string;
  label: string;
  said: Said;
  isFixed: boolean;
  onSet: (change: Said, key: string) => void;
}

function Line({ code, label, said, isFixed, onSet }: LineProps) {
  const number = (name: "decimals" | "low" | "high", title: string) => (
    <td>
      <input
        class="cell number"
        type="number"
        {...(name === "decimals" ? { min: "0", max: "9", step: "1" } : { step: "any" })}
        disabled={isFixed}
        aria-label={`${code}: ${title}`}
        value={typeof said[name] === "number" ? String(said[name]) : ""}
        onInput={(event) => {
          const { value, validity } = event.currentTarget;
          if (!validity.badInput) onSet({ [name]: value === "" ? null : Number(value) }, name);
        }}
      />
    </td>
  );
  return (
    <tr>
      <td class="plain">
        <Name mono text={code} />
      </td>
      <td class="plain">
        <Name text={label.length > 60 ? `${label.slice(0, 60)}…` : label} />
      </td>
      <td>
        <input
          class="cell short"
          maxLength={16}
          disabled={isFixed}
          aria-label={`${code}: ${t(w.unit)}`}
          value={String(said["unit"] ?? "")}
          onInput={(event) => onSet({ unit: event.currentTarget.value }, "unit")}
        />
      </td>
      {number("decimals", t(w.decimals))}
      {number("low", t(w.low))}
      {number("high", t(w.high))}
      <td class="wide">
        <StatesInput code={code} states={(said["states"] ?? {}) as States} isFixed={isFixed} onStates={(states) => onSet({ states }, "states")} />
      </td>
    </tr>
  );
}

function StatesInput(props: { code: string; states: States; isFixed: boolean; onStates: (states: States) => void }) {
  const { code, states, isFixed, onStates } = props;
  const [typed, setTyped] = useState<string | null>(null);
  const isWrong = typed !== null && readStates(typed) === null;
  return (
    <>
      <input
        class={`cell ${isWrong ? "bad" : ""}`}
        maxLength={4_000}
        disabled={isFixed}
        aria-label={`${code}: ${t(w.states)}`}
        aria-invalid={isWrong || undefined}
        value={typed ?? statesText(states)}
        onInput={(event) => {
          setTyped(event.currentTarget.value);
          const read = readStates(event.currentTarget.value);
          if (read) onStates(read);
        }}
        onBlur={() => !isWrong && setTyped(null)}
      />
      {isWrong && (
        <span class="wrong" role="alert">
          {t(w.badStates)}
        </span>
      )}
    </>
  );
}
