/** Firmware campaigns: all of them, and how one goes, wave by wave and terminal by terminal. */
import type { Fields, Result, RowOf } from "terrazzo-client";
import { Card, Empty, Head, type Meaning, Name, Problem, Tag } from "../parts/basics.tsx";
import { Ask, FormDialog } from "../parts/forms.tsx";
import { RecordList, useDialogs } from "../parts/list.tsx";
import type { Column } from "../parts/table.tsx";
import { call, may, page } from "../shell/api.ts";
import { useAsked, useLoad, useTurns } from "../shell/hooks.ts";
import { titles } from "../shell/pages.ts";
import { link, replaceQuery, route } from "../shell/routes.ts";
import { tellError } from "../shell/toasts.tsx";
import { w as common } from "../words/common.ts";
import { keptReason } from "../words/kept-reasons.ts";
import { language, type Pair, t } from "../words/words.ts";
import { w } from "./words.ts";

type Campaign = RowOf<Result<"get_campaign_list">>;
type Item = RowOf<Result<"get_campaign_terminal_list">>;
type Step = "start" | "pause" | "resume" | "abort";

const EVERY_MS = 5_000;
const MOST_CONFIGURATIONS = 200;
const STATES: Record<string, { kind: Meaning; word: Pair; steps: Step[] }> = {
  created: { kind: "", word: w.created, steps: ["start"] },
  running: { kind: "info", word: w.running, steps: ["pause", "abort"] },
  paused: { kind: "warn", word: w.paused, steps: ["resume", "abort"] },
  aborted: { kind: "bad", word: w.aborted, steps: [] },
  done: { kind: "good", word: w.done, steps: [] },
};
/** States of terminals, in the order in which the bar has them. */
const OF_TERMINALS: readonly { id: string; kind: Meaning; word: Pair }[] = [
  { id: "done", kind: "good", word: w.done },
  { id: "failed", kind: "bad", word: w.failed },
  { id: "downloading", kind: "info", word: w.downloading },
  { id: "sent", kind: "info", word: w.sent },
  { id: "pending", kind: "", word: w.pending },
];
const STEPS = { start: "start_campaign", pause: "pause_campaign", resume: "resume_campaign", abort: "abort_campaign" } as const;

export function Page() {
  const uid = route.value.path[0];
  return uid ? <One key={uid} uid={uid} /> : <List />;
}

function State({ state }: { state: string }) {
  const known = STATES[state];
  return <Tag kind={known?.kind ?? ""}>{known ? t(known.word) : state}</Tag>;
}

/** How many terminals are in each state, as one bar; the numbers are its name. */
function Progress({ counts }: { counts: Record<string, number> }) {
  const total = Object.values(counts).reduce((sum, n) => sum + n, 0);
  const label = OF_TERMINALS.filter((each) => counts[each.id]).map((each) => `${t(each.word)} ${counts[each.id]}`).join(", ");
  let x = 0;
  return (
    <div class="progress" title={label}>
      <svg viewBox="0 0 100 8" preserveAspectRatio="none" role="img" aria-label={label || "0"}>
        {OF_TERMINALS.map((each) => {
          const width = (100 * (counts[each.id] ?? 0)) / Math.max(1, total);
          const from = x;
          x += width;
          return width ? <rect key={each.id} class={each.id} x={from} width={width} y={0} height={8} /> : null;
        })}
      </svg>
    </div>
  );
}

function List() {
  const { dialog, open, close, done, turn } = useDialogs<"new">();
  useAsked("add", () => may("admin") && open("new"));
  const configurations = useLoad((abort) => page("get_terminal_config_list", { page_size: MOST_CONFIGURATIONS }, abort), []);
  const columns: Column<Campaign>[] = [
    { id: "name", title: t(w.campaign), width: 32, render: (row) => <a href={link(["campaigns", row.uid])}><Name text={row.name} /></a> },
    { id: "unit", title: t(w.unit), width: 8, isMinor: true, render: (row) => row.unit },
    { id: "version", title: t(w.version), width: 12, isMinor: true, render: (row) => <Name text={row.version} mono /> },
    { id: "progress", title: t(w.progress), width: 26, render: (row) => <Progress counts={row.progress as Record<string, number>} /> },
    { id: "state", title: t(common.state), width: 12, render: (row) => <State state={row.state} /> },
  ];
  const options = (configurations.data?.rows ?? []).map((each) => [String(each.uid), String(each.name)] as const);
  return (
    <>
      <Head title={t(titles.campaigns)}>{may("admin") && <button onClick={() => open("new")}>{t(w.add)}</button>}</Head>
      <RecordList
        label={t(titles.campaigns)}
        columns={columns}
        read={(index, size, _, abort) => page("get_campaign_list", { page_index: index, page_size: size, order_by: ["id", "desc"] }, abort)}
        rowKey={(row) => row.uid}
        turn={turn}
        empty={<Empty title={t(w.none)}>{t(w.noneDo)}</Empty>}
      />
      {dialog && (
        <FormDialog
          draft="campaign new"
          title={t(w.add)}
          submit={t(common.save)}
          initial={{ waves: "5, 45, 50", failure_percent: "20" }}
          fields={[
            { name: "name", label: t(common.name), isRequired: true, most: 64 },
            { name: "config_id", label: t(w.config), kind: "choice", options },
            { name: "unit", label: t(w.unit), kind: "choice", options: [["LUA", "LUA"], ["MCU", "MCU"]] },
            { name: "version", label: t(w.version), most: 32 },
            { name: "waves", label: t(w.waves), most: 200 },
            { name: "terminal_list", label: t(w.terminals), kind: "long", most: 100_000 },
            { name: "failure_percent", label: t(w.failurePercent), kind: "number", least: 1, most: 100 },
          ]}
          onSubmit={async (values) => {
            const { version, terminal_list: terminals, ...rest } = values;
            const list = (terminals ?? "").split(/[\s,]+/).filter(Boolean);
            await call("create_campaign", {
              ...rest,
              waves: (values["waves"] ?? "100").split(",").map((each) => Number(each.trim())),
              failure_percent: Number(values["failure_percent"]),
              ...(version ? { version } : {}),
              ...(list.length ? { terminal_list: list } : {}),
            } as unknown as Fields<"create_campaign">);
            done(t(w.changed));
          }}
          onClose={close}
        />
      )}
    </>
  );
}

function One({ uid }: { uid: string }) {
  const { data, error, reload } = useLoad((abort) => call("get_campaign_item", { uid }, abort), [uid], EVERY_MS);
  const { dialog, open, close, done, turn } = useDialogs<Step>();
  const take = async (step: Step) => {
    await call(STEPS[step], { uid });
    done(t(w.changed));
    reload();
  };
  const ask = (step: Step) => {
    if (step === "start" || step === "abort") open(step);
    else take(step).catch(tellError);
  };
  return (
    <>
      <Head name title={data?.name ?? ""} sub={data && <State state={data.state} />}>
        {may("admin") &&
          data &&
          STATES[data.state]?.steps.map((step) => (
            <button key={step} class={step === "abort" ? "danger" : step === "start" ? "primary" : ""} onClick={() => ask(step)}>
              {t(w[step])}
            </button>
          ))}
        <a class="button" href={link(["campaigns"])}>
          {t(w.all)}
        </a>
      </Head>
      {!!error && <Problem error={error} retry={reload} />}
      {data && (
        <div class="stack">
          <Waves campaign={data} />
          <Terminals uid={uid} turn={turn} />
        </div>
      )}
      {dialog && <Ask title={t(w[dialog])} text={t(dialog === "abort" ? w.abortAsk : w.startAsk)} action={t(w[dialog])} isDangerous={dialog === "abort"} onYes={() => take(dialog)} onClose={close} />}
    </>
  );
}

function Waves({ campaign }: { campaign: Result<"get_campaign_item"> }) {
  const shares = Array.isArray(campaign.waves) ? campaign.waves.map(Number) : [100];
  const waves = campaign.wave_progress as Record<string, number>[];
  return (
    <Card title={t(w.progress)} more={<span class="dim">{`${campaign.unit} ${campaign.version}`}</span>}>
      {campaign.reason && (
        <p>
          {t(w.why)}: <Name text={keptReason(campaign.reason, language.value)} />
        </p>
      )}
      <table>
        <thead>
          <tr>
            <th scope="col">{t(w.waveName)}</th>
            <th scope="col" class="num narrow-hide">
              {t(w.share)}
            </th>
            <th scope="col">{t(w.progress)}</th>
            {OF_TERMINALS.map((each) => (
              <th key={each.id} scope="col" class="num narrow-hide">
                {t(each.word)}
              </th>
            ))}
            <th scope="col" class="num">
              {t(w.done)}
            </th>
          </tr>
        </thead>
        <tbody>
          {(waves.length ? waves : [campaign.progress as Record<string, number>]).map((counts, i) => {
            const total = Object.values(counts).reduce((sum, n) => sum + n, 0);
            return (
              <tr key={i}>
                <td class="nowrap">
                  {t(w.wave, { n: i + 1 })} {campaign.state === "running" && campaign.wave === i + 1 && <Tag kind="info">{t(w.waveNow)}</Tag>}
                </td>
                <td class="num nowrap narrow-hide">{shares[i] === undefined ? "" : `${shares[i]}%`}</td>
                <td class="wide">
                  <Progress counts={counts} />
                </td>
                {OF_TERMINALS.map((each) => (
                  <td key={each.id} class="num narrow-hide">
                    {(counts[each.id] ?? 0).toLocaleString()}
                  </td>
                ))}
                <td class="num nowrap">{t(w.of, { n: counts["done"] ?? 0, total })}</td>
              </tr>
            );
          })}
        </tbody>
      </table>
    </Card>
  );
}

function Terminals({ uid, turn }: { uid: string; turn: number }) {
  const state = route.value.query.get("state") ?? "";
  const turns = useTurns(EVERY_MS);
  const columns: Column<Item>[] = [
    { id: "terminal", title: t(w.terminal), width: 26, render: (row) => <a href={link(["terminals", row.terminal_id])}><Name text={row.terminal_id} mono /></a> },
    { id: "wave", title: t(w.waveName), width: 8, isNumber: true, isMinor: true, render: (row) => row.wave },
    {
      id: "state",
      title: t(common.state),
      width: 16,
      render: (row) => {
        const known = OF_TERMINALS.find((each) => each.id === row.state);
        return <Tag kind={known?.kind ?? ""}>{known ? t(known.word) : row.state}</Tag>;
      },
    },
    { id: "version", title: t(w.version), width: 14, isMinor: true, render: (row) => <Name text={row.version} mono /> },
    { id: "attempts", title: t(w.attempts), width: 10, isNumber: true, isMinor: true, render: (row) => row.attempts },
    { id: "reason", title: t(w.reason), render: (row) => <Name text={keptReason(row.reason, language.value)} /> },
  ];
  return (
    <RecordList
      label={t(titles.terminals)}
      columns={columns}
      query={state}
      read={(index, size, _, abort) => page("get_campaign_terminal_list", { uid, page_index: index, page_size: size, ...(state ? { state: state as "done" } : {}) }, abort)}
      rowKey={(row) => row.terminal_id}
      turn={turn + turns}
      tools={
        <select aria-label={t(common.state)} value={state} onChange={(event) => replaceQuery({ state: event.currentTarget.value })}>
          <option value="">{t(w.anyState)}</option>
          {OF_TERMINALS.map((each) => (
            <option key={each.id} value={each.id}>
              {t(each.word)}
            </option>
          ))}
        </select>
      }
      empty={<Empty title={t(w.noTerminals)}>{t(w.noTerminalsDo)}</Empty>}
    />
  );
}
