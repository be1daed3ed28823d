/** The last messages of a terminal by channel: as they are read, as they came, and which variables of which objects they became. */
import { useState } from "preact/hooks";
import type { Result } from "terrazzo-client";
import { Card, Empty, Name, Problem, Tag } from "../parts/basics.tsx";
import { Json } from "../parts/json.tsx";
import { call } from "../shell/api.ts";
import { useLive, useLoad, useSeldom } from "../shell/hooks.ts";
import { link, replaceQuery, route } from "../shell/routes.ts";
import { w as common } from "../words/common.ts";
import { t } from "../words/words.ts";
import { Came } from "./came.tsx";
import { w } from "./words.ts";

type Mapped = Result<"get_mapped_messages">;
type Message = Mapped["data"][number];
type Fed = Mapped["objects"][number];

const SHOWN = 20;
const SETTLE_MS = 1_000;
const MOST_CHARS = 10_000;
const MOST_VARIABLES = 60;

export function Messages({ uid }: { uid: string }) {
  const channel = route.value.query.get("channel") ?? "";
  const fields = { terminal_id: uid, items: SHOWN, ...(channel ? { topic: [channel] } : {}) };
  const { data, error, reload } = useLoad((abort) => call("get_mapped_messages", fields, abort), [uid, channel]);
  const [isRaw, setRaw] = useState(false);
  const soon = useSeldom(reload, SETTLE_MS);
  useLive({ kinds: ["grid"], terminal_id: uid }, soon, soon);
  if (error) return <Problem error={error} retry={reload} />;
  if (!data) return <p class="dim">{t(common.loading)}</p>;
  return (
    <Card
      title={t(w.lastMessages)}
      more={
        <span class="line dim">
          {t(w.following)}
          {data.channels.length > 1 && <Channels names={data.channels} chosen={channel} />}
          <label class="line">
            <input type="checkbox" checked={isRaw} onChange={(event) => setRaw(event.currentTarget.checked)} /> {t(w.raw)}
          </label>
        </span>
      }
    >
      <Feeds mapped={data} />
      {!data.data.length && <Empty title={t(w.noMessages)}>{t(w.noMessagesDo)}</Empty>}
      <ul class="messages">
        {data.data.map((each, i) => (
          <OneMessage key={`${each.time}-${each.topic}-${i}`} message={each} objects={data.objects} isRaw={isRaw} />
        ))}
      </ul>
    </Card>
  );
}

function Channels({ names, chosen }: { names: readonly string[]; chosen: string }) {
  return (
    <select aria-label={t(w.channel)} value={chosen} onChange={(event) => replaceQuery({ channel: event.currentTarget.value })}>
      <option value="">{t(w.channels)}</option>
      {names.map((each) => (
        <option key={each} value={channelOf(each)}>
          {channelOf(each).slice(0, 80)}
        </option>
      ))}
    </select>
  );
}

/** `r` of `g/<uid>/r`, and what lies deeper. */
function channelOf(topic: string): string {
  return topic.split("/").slice(2).join("/");
}

/** Which objects the terminal feeds, and by which mapping. */
function Feeds({ mapped }: { mapped: Mapped }) {
  const { objects, total_objects: total } = mapped;
  if (!objects.length) return <p class="dim">{t(w.feedsNone)}</p>;
  return (
    <p class="feeds">
      <span class="dim">{t(w.feeds)}</span>
      {objects.map((each) => (
        <span key={each.id}>
          <a href={link(["objects", String(each.id)])}>
            <Name text={each.name} />
          </a>{" "}
          {each.mapping_id === null ? (
            <Tag kind="warn">{t(w.noMapping)}</Tag>
          ) : (
            <a href={link(["mapping", "mapping", String(each.mapping_id)])}>
              {t(w.itsMapping)}
            </a>
          )}
        </span>
      ))}
      {total > objects.length && <span class="dim">{t(w.andMore, { n: total - objects.length })}</span>}
    </p>
  );
}

function OneMessage({ message, objects, isRaw }: { message: Message; objects: readonly Fed[]; isRaw: boolean }) {
  return (
    <Came topic={message.topic} time={message.time}>
      {isRaw || message.points === null ? <pre dir="auto">{rawText(message.payload)}</pre> : <Json value={message.points} />}
      {message.points === null && <span class="dim">{t(w.noPoints)}</span>}
      {message.became.map((each) => (
        <Became key={each.object_id} name={objects.find((object) => object.id === each.object_id)?.name ?? String(each.object_id)} id={each.object_id} values={each.values} />
      ))}
      {!message.became.length && objects.length > 0 && <span class="dim">{t(w.becameNothing)}</span>}
    </Came>
  );
}

function Became({ id, name, values }: { id: number; name: string; values: Record<string, unknown> }) {
  const all = Object.entries(values);
  return (
    <span class="became">
      <span aria-hidden="true">{"→"}</span>
      <a href={link(["objects", String(id)])}>
        <Name text={name} />
      </a>
      {all.slice(0, MOST_VARIABLES).map(([code, value]) => (
        <Name key={code} mono text={`${code} = ${typeof value === "string" ? value : JSON.stringify(value)}`} />
      ))}
      {all.length > MOST_VARIABLES && <span class="dim">{t(w.andMore, { n: all.length - MOST_VARIABLES })}</span>}
    </span>
  );
}

/** As it came. */
function rawText(payload: unknown): string {
  const text = typeof payload === "string" ? payload : JSON.stringify(payload);
  return text.length > MOST_CHARS ? `${text.slice(0, MOST_CHARS)}…` : text;
}
