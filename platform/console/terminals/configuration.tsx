/** The configuration that a terminal ought to have, and what it reports otherwise, since when. */
import { useState } from "preact/hooks";
import type { Result } from "terrazzo-client";
import { Age, Card, type Meaning, Name, Tag } from "../parts/basics.tsx";
import { may } from "../shell/api.ts";
import { link } from "../shell/routes.ts";
import { w as common } from "../words/common.ts";
import { type Pair, t } from "../words/words.ts";
import { words as bulk } from "./bulk-words.ts";
import { ConfigDialog } from "./config-dialog.tsx";
import { w } from "./words.ts";

type Wanted = Result<"get_terminal_status">["configuration"];

const STATES: Record<NonNullable<Wanted>["state"], { word: Pair; why: Pair; kind: Meaning }> = {
  pending: { word: w.configPending, why: w.configPendingWhy, kind: "" },
  sent: { word: w.configSent, why: w.configSentWhy, kind: "info" },
  confirmed: { word: w.configConfirmed, why: w.configConfirmedWhy, kind: "good" },
  differs: { word: w.configDiffers, why: w.configDiffersWhy, kind: "warn" },
  refused: { word: w.configRefused, why: w.configRefusedWhy, kind: "bad" },
};
const VERSION_CHARS = 12;

/** `configId`: of the configuration; null: the terminal has none. */
export function Configuration({ wanted, configId, onDone }: { wanted: Wanted; configId: string | null; onDone: () => void }) {
  const [isEditing, setEditing] = useState(false);
  const more = configId !== null && (
    <span class="line">
      <a href={link(["terminals"], { configurations: configId })}>{t(common.open)}</a>
      {may("admin") && (
        <button class="small" onClick={() => setEditing(true)}>
          {t(bulk.configChange)}
        </button>
      )}
      {isEditing && <ConfigDialog uid={configId} onClose={() => setEditing(false)} onDone={onDone} />}
    </span>
  );
  if (!wanted) {
    return (
      <Card title={t(w.configTitle)} more={more}>
        <p class="dim">{t(w.configNone)}</p>
      </Card>
    );
  }
  const state = STATES[wanted.state];
  return (
    <Card title={t(w.configTitle)} more={more}>
      <div class="form">
        <p class="line">
          <Tag kind={state.kind}>{t(state.word)}</Tag>
          <span class="dim">
            {t(w.configSince)} <Age at={wanted.since} />
          </span>
          <span class="dim">
            {t(w.configReported)} <Age at={wanted.reported} />
          </span>
          <span class="dim" title={wanted.version}>
            {t(w.configVersion)} <span class="mono">{wanted.version.slice(0, VERSION_CHARS)}</span>
          </span>
        </p>
        <p>{t(state.why)}</p>
        {wanted.difference.length > 0 && <Differences rows={wanted.difference} />}
      </div>
    </Card>
  );
}

function Differences({ rows }: { rows: NonNullable<Wanted>["difference"] }) {
  return (
    <div class="scroll" tabIndex={0} role="region" aria-label={t(w.configTitle)}>
      <table>
        <thead>
          <tr>
            <th scope="col">{t(w.configKey)}</th>
            <th scope="col">{t(w.configWanted)}</th>
            <th scope="col">{t(w.configIs)}</th>
          </tr>
        </thead>
        <tbody>
          {rows.map((each) => (
            <tr key={each.key}>
              <td>
                <Name mono text={each.key} />
              </td>
              <td>
                <Name mono text={textOf(each.wanted)} />
              </td>
              <td class="strong">
                <Name mono text={textOf(each.reported)} />
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

/** A value of a configuration, as one line. */
export function textOf(value: unknown): string {
  return value === null || value === undefined ? "–" : typeof value === "string" ? value : JSON.stringify(value);
}
