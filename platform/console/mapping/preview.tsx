/** The last messages through the draft, and what the draft changes: rows, objects, values. */
import type { Loaded } from "../shell/hooks.ts";
import { Age, Card, Empty, Name, Problem, Tag } from "../parts/basics.tsx";
import { Json } from "../parts/json.tsx";
import { link } from "../shell/routes.ts";
import { serverText } from "../words/server-text.ts";
import { language, t } from "../words/words.ts";
import type { Draft } from "./editing.ts";
import { cellText, changesOf, type RowChange } from "./rows.ts";
import type { Checked, Using, UsingObject } from "./using.ts";
import { w } from "./words.ts";

const OBJECTS_NAMED = 12;
const EVENTS_SHOWN = 10;

export function valueText(value: unknown): string {
  return value === null || value === undefined ? "–" : cellText(value);
}

export function Preview(props: { checked: Loaded<Checked | null>; using: Using | undefined; object: UsingObject | undefined; onObject: (id: string) => void }) {
  const { checked, using, object, onObject } = props;
  const isWrong = !!checked.data?.problems.length;
  return (
    <Card
      title={t(w.preview)}
      more={
        using && using.rows.length > 0 ? (
          <select aria-label={t(w.previewOf)} value={object ? String(object.id) : ""} onChange={(event) => onObject(event.currentTarget.value)}>
            {using.rows.map((each) => (
              <option key={each.id} value={String(each.id)}>
                {each.name.slice(0, 80)}
              </option>
            ))}
          </select>
        ) : undefined
      }
    >
      {using && !using.rows.length && <Empty title={t(w.noObjects)}>{t(w.noObjectsDo)}</Empty>}
      {checked.error !== undefined && <Problem error={checked.error} retry={checked.reload} />}
      {isWrong && <p class="dim">{t(w.mend)}</p>}
      {object && checked.data && !isWrong && <Messages checked={checked.data} />}
    </Card>
  );
}

function Messages({ checked }: { checked: Checked }) {
  const messages = [...checked.messages].reverse();
  if (!messages.length) return <Empty title={t(w.noMessages)}>{t(w.noMessagesDo)}</Empty>;
  return (
    <>
      <ul class="through" tabIndex={0} aria-label={t(w.preview)}>
        {messages.map((each, index) => (
          <li key={index}>
            <span class="line">
              <Name mono text={each.topic} />
              <span class="dim nowrap">
                <Age at={each.time} />
              </span>
            </span>
            <Json value={each.payload} />
            <span aria-hidden="true">{"→"}</span>
            <Became message={each} />
          </li>
        ))}
      </ul>
      <h3>{t(w.raised)}</h3>
      {!checked.events.length && <p class="dim">{t(w.none)}</p>}
      <ul class="raised">
        {checked.events.slice(-EVENTS_SHOWN).map((each, index) => (
          <li key={index}>
            <Tag kind="warn">
              <Name text={(language.value === "zh" ? each.label_cn : each.label_en) || each.code} />
            </Tag>
            <Name mono text={`${each.code} = ${each.value}`} />
            <span class="dim nowrap">
              <Age at={each.time} />
            </span>
          </li>
        ))}
      </ul>
    </>
  );
}

/** What the rows make of a message, or why it can't be read. */
function Became({ message: { problem, told, values } }: { message: Checked["messages"][number] }) {
  if (problem) return <span class="is-bad">{serverText(problem, told)}</span>;
  return Object.keys(values).length ? <Json value={values} /> : <span class="dim">{t(w.makesNothing)}</span>;
}

const HOW = { added: w.added, removed: w.removed, changed: w.altered, moved: w.moved } as const;
const MEANING = { added: "good", removed: "bad", changed: "info", moved: "" } as const;

/** What is different from what is saved, and for which objects. */
export function Changes(props: { before: Draft; after: Draft; using: Using | undefined; children?: preact.ComponentChildren }) {
  const { before, after, using, children } = props;
  const changes = changesOf(before.rows, after.rows);
  const isSaid = JSON.stringify(before.variables) !== JSON.stringify(after.variables);
  const isRenamed = before.name !== after.name;
  if (!changes.length && !isSaid && !isRenamed) return <p class="dim">{t(w.noChanges)}</p>;
  return (
    <div class="form">
      <ul class="row-changes">
        {changes.slice(0, 100).map((each, index) => (
          <li key={index}>
            <Tag kind={MEANING[each.how]}>{t(HOW[each.how])}</Tag>
            <span>
              <Name mono text={each.code || "–"} />
              <Cells change={each} />
            </span>
          </li>
        ))}
        {changes.length > 100 && <li class="dim">{t(w.andMore, { n: changes.length - 100 })}</li>}
        {isSaid && (
          <li>
            <Tag kind="info">{t(w.altered)}</Tag>
            <span>{t(w.said)}</span>
          </li>
        )}
        {isRenamed && (
          <li>
            <Tag kind="info">{t(w.altered)}</Tag>
            <span>{t(w.renamed)}</span>
          </li>
        )}
      </ul>
      {using && <Objects using={using} />}
      {children}
    </div>
  );
}

function Cells({ change }: { change: RowChange }) {
  const { how, before, after } = change;
  if (how !== "changed" || !before || !after) return null;
  const isAlike = before.length === after.length;
  const places = isAlike ? after.map((_cell, at) => at).filter((at) => cellText(before[at]) !== cellText(after[at])) : [];
  const lines = isAlike ? places.map((at) => [cellText(before[at]), cellText(after[at])]) : [[before.map(cellText).join(" · "), after.map(cellText).join(" · ")]];
  return (
    <>
      {lines.map(([was, is], index) => (
        <span key={index} class="was-is">
          <del>
            <Name mono text={was || "–"} />
          </del>
          <ins>
            <Name mono text={is || "–"} />
          </ins>
        </span>
      ))}
    </>
  );
}

function Objects({ using }: { using: Using }) {
  const named = using.rows.slice(0, OBJECTS_NAMED);
  return (
    <div>
      <p>{t(w.forObjects, { n: using.total })}</p>
      <p class="line">
        {named.map((each) => (
          <a key={each.id} href={link(["objects", String(each.id)])}>
            <Name text={each.name} />
          </a>
        ))}
        {using.total > named.length && <span class="dim">{t(w.andMore, { n: using.total - named.length })}</span>}
      </p>
    </div>
  );
}

/** The values that would be others, by the last messages of one object. */
export function Effect({ name, saved, draft }: { name: string; saved: Checked; draft: Checked }) {
  const before = saved.variables as Record<string, unknown>;
  const after = draft.variables as Record<string, unknown>;
  const codes = [...new Set([...Object.keys(after), ...Object.keys(before)])].filter((code) => valueText(before[code]) !== valueText(after[code]));
  return (
    <div>
      <h3>
        <bdi>{t(w.effect, { name: name.slice(0, 80) })}</bdi>
      </h3>
      {!codes.length ? (
        <p class="dim">{t(w.noEffect)}</p>
      ) : (
        <table>
          <thead>
            <tr>
              <th>{t(w.code)}</th>
              <th class="num">{t(w.before)}</th>
              <th class="num">{t(w.after)}</th>
            </tr>
          </thead>
          <tbody>
            {codes.map((code) => (
              <tr key={code}>
                <td>
                  <Name mono text={code} />
                </td>
                <td class="num dim">{valueText(before[code]).slice(0, 60)}</td>
                <td class="num strong">{valueText(after[code]).slice(0, 60)}</td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
    </div>
  );
}
