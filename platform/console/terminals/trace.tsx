/** The live trace of a terminal's packets: for administrators, for some minutes. */
import { useEffect, useRef, useState } from "preact/hooks";
import type { Result } from "terrazzo-client";
import { Card, Empty, Name, Problem, Tag } from "../parts/basics.tsx";
import { call } from "../shell/api.ts";
import { clock } from "../shell/clock.ts";
import { useLive, useLoad } from "../shell/hooks.ts";
import { tell, tellError } from "../shell/toasts.tsx";
import { w as common } from "../words/common.ts";
import { t } from "../words/words.ts";
import { w } from "./trace-words.ts";

type Packet = Result<"get_trace">["packets"][number];

const MOST_SHOWN = 500;
const MINUTES = [1, 5, 10] as const;

export function Trace({ uid }: { uid: string }) {
  const { data, error, reload } = useLoad((abort) => call("get_trace", { terminal_id: uid }, abort), [uid]);
  const [packets, setPackets] = useState<readonly Packet[]>([]);
  const [isPaused, setPaused] = useState(false);
  const [kind, setKind] = useState("");
  const held = useRef<Packet[]>([]);
  useEffect(() => {
    if (data) setPackets(data.packets);
  }, [data]);
  const add = (packet: Packet) => {
    if (isPaused) held.current = [...held.current, packet].slice(-MOST_SHOWN);
    else setPackets((before) => joined(before, [packet]));
  };
  useLive(
    { kinds: ["trace"], terminal_id: uid },
    (frame) => ("ended" in frame.data ? reload() : add(frame.data as unknown as Packet)),
    reload,
  );
  const pause = () => {
    if (isPaused) setPackets((before) => joined(before, held.current));
    held.current = [];
    setPaused(!isPaused);
  };
  const shown = packets.filter((each) => !kind || each.packet === kind).reverse();
  const kinds = [...new Set(packets.map((each) => each.packet))].sort();
  if (error) return <Problem error={error} retry={reload} />;
  if (!data) return <p class="dim">{t(common.loading)}</p>;
  return (
    <Card title={t(w.title)} more={<State state={data} />}>
      <div class="tools">
        <Steps uid={uid} isOn={data.until !== null} onDone={reload} />
        <button onClick={pause} aria-pressed={isPaused}>
          {t(isPaused ? w.goOn : w.pause)}
        </button>
        <select aria-label={t(w.kind)} value={kind} onChange={(event) => setKind(event.currentTarget.value)}>
          <option value="">{t(w.allKinds)}</option>
          {kinds.map((each) => (
            <option key={each} value={each}>
              {each}
            </option>
          ))}
        </select>
        {"clipboard" in navigator && (
          <button disabled={!shown.length} onClick={() => void copy(shown)}>
            {t(common.copy)}
          </button>
        )}
      </div>
      {!shown.length && <Empty title={t(data.until ? w.waiting : w.none)}>{t(data.until ? w.waitingDo : w.noneDo)}</Empty>}
      <ol class="messages trace" aria-label={t(w.title)}>
        {shown.map((each) => (
          <Row key={each.number} packet={each} />
        ))}
      </ol>
    </Card>
  );
}

/** Packets in their order, each once: what was read and what came live may overlap. */
function joined(before: readonly Packet[], more: readonly Packet[]): Packet[] {
  const last = before.at(-1)?.number ?? 0;
  return [...before, ...more.filter((each) => each.number > last)].slice(-MOST_SHOWN);
}

function State({ state }: { state: Result<"get_trace"> }) {
  if (!state.until) return <Tag>{t(w.off)}</Tag>;
  const seconds = Math.max(0, Math.round((clock.parse(state.until) - clock.now.value) / 1000));
  return (
    <span class="line">
      <Tag kind="warn">{t(w.on)}</Tag>
      <span class="dim">{t(w.left, { time: `${Math.floor(seconds / 60)}:${String(seconds % 60).padStart(2, "0")}`, by: state.by })}</span>
    </span>
  );
}

function Steps({ uid, isOn, onDone }: { uid: string; isOn: boolean; onDone: () => void }) {
  const [minutes, setMinutes] = useState("5");
  const go = async () => {
    try {
      if (isOn) await call("stop_trace", { terminal_id: uid });
      else await call("start_trace", { terminal_id: uid, minutes: Number(minutes) });
    } catch (error) {
      tellError(error);
    }
    onDone();
  };
  return (
    <>
      {!isOn && (
        <select aria-label={t(w.length)} value={minutes} onChange={(event) => setMinutes(event.currentTarget.value)}>
          {MINUTES.map((each) => (
            <option key={each} value={String(each)}>
              {t(w.minutes, { n: each })}
            </option>
          ))}
        </select>
      )}
      <button class={isOn ? "" : "primary"} onClick={() => void go()}>
        {t(isOn ? w.stop : w.start)}
      </button>
    </>
  );
}

function Row({ packet }: { packet: Packet }) {
  return (
    <li>
      <span class="line">
        <span class="mono">{timeOf(packet)}</span>
        <span class="strong">
          {packet.direction === "in" ? "→" : "←"} {packet.packet}
        </span>
        <span class="sr">{t(packet.direction === "in" ? w.fromTerminal : w.toTerminal)}</span>
        <span class="dim">{factsOf(packet)}</span>
        {!!packet.missed && <Tag kind="warn">{t(w.missed, { n: packet.missed })}</Tag>}
      </span>
      {packet.topic && <Name text={packet.topic} mono />}
      {packet.filters?.map((each, i) => (
        <Name key={i} text={each} mono />
      ))}
      {packet.payload && (
        <pre dir="auto">
          {packet.is_hex ? `${t(w.hex)} ` : ""}
          {packet.payload}
          {packet.cut ? "…" : ""}
        </pre>
      )}
    </li>
  );
}

function timeOf(packet: Packet): string {
  const ms = packet.time_us / 1000;
  return `${clock.format(ms).slice(11)}.${String(Math.floor(ms % 1000)).padStart(3, "0")}`;
}

function factsOf(packet: Packet): string {
  const facts = [`${packet.size.toLocaleString()} B`];
  if (typeof packet.qos === "number") facts.push(`QoS ${packet.qos}`);
  if (packet.retain) facts.push("RETAIN");
  if (packet.duplicate) facts.push("DUP");
  if (typeof packet.packet_id === "number") facts.push(`#${packet.packet_id}`);
  return [...facts, ...(packet.codes ?? [])].join(" · ");
}

async function copy(packets: readonly Packet[]): Promise<void> {
  const lines = [...packets].reverse().map((each) => [timeOf(each), each.direction, each.packet, factsOf(each), each.topic, ...(each.filters ?? []), each.payload].filter(Boolean).join("  "));
  try {
    await navigator.clipboard.writeText(lines.join("\n"));
    tell(t(common.copied));
  } catch (error) {
    tellError(error);
  }
}
