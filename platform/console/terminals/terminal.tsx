/** One terminal: is it there, what did it say, why was it refused, how is it connected, what was it told. */
import { useState } from "preact/hooks";
import type { Result } from "terrazzo-client";
import { Age, Card, Code, Head, Name, Problem, Tag } from "../parts/basics.tsx";
import { call, may, session } from "../shell/api.ts";
import { useLive, useLoad, useSeldom } from "../shell/hooks.ts";
import { link, route } from "../shell/routes.ts";
import { w as common } from "../words/common.ts";
import { t } from "../words/words.ts";
import { allowedOf } from "./allowed.ts";
import { PresenceBand } from "./band.tsx";
import { words as bulk } from "./bulk-words.ts";
import { Commands } from "./commands.tsx";
import { Configuration } from "./configuration.tsx";
import { snippets } from "./connect.ts";
import { EditTerminal } from "./edit.tsx";
import { Messages } from "./messages.tsx";
import { Rejects } from "./rejects.tsx";
import { adviceText, reasonText } from "../words/reasons.ts";
import { breakText } from "../words/server-text.ts";
import { ServiceButton, ServiceNote } from "./service.tsx";
import { Trace } from "./trace.tsx";
import { w as tracing } from "./trace-words.ts";
import { w } from "./words.ts";

type Item = Result<"get_terminal_item">;
type Status = Result<"get_terminal_status">;

const EVERY_MS = 30_000;
const SETTLE_MS = 1_000;

export function Terminal({ uid }: { uid: string }) {
  const item = useLoad((abort) => call("get_terminal_item", { uid }, abort), [uid], EVERY_MS);
  const status = useLoad((abort) => call("get_terminal_status", { terminal_id: uid }, abort), [uid], EVERY_MS);
  const [isEditing, setEditing] = useState(false);
  const [turn, setTurn] = useState(0);
  const soon = useSeldom(() => {
    status.reload();
    setTurn((n) => n + 1);
  }, SETTLE_MS);
  useLive({ kinds: ["terminal"], terminal_id: uid }, soon, soon);
  const tab = route.value.query.get("tab") ?? "now";
  const found = item.data;
  const isOnline = status.data?.online;
  return (
    <>
      <Head
        name
        title={found?.name || uid}
        sub={
          <span class="line">
            {status.data && <Tag kind={isOnline ? "good" : "warn"}>{t(isOnline ? w.online : w.offline)}</Tag>}
            <Name text={uid} mono />
          </span>
        }
      >
        {found && may("admin") && <button onClick={() => setEditing(true)}>{t(common.edit)}</button>}
        {found && !found.out_of_service && may("operator") && <ServiceButton uid={uid} onDone={item.reload} />}
        <a class="button" href={link(["terminals"])}>
          {t(w.back)}
        </a>
      </Head>
      {found && isEditing && <EditTerminal item={found} onClose={() => setEditing(false)} onDone={item.reload} />}
      {found?.out_of_service && <ServiceNote uid={uid} out={found.out_of_service} onDone={item.reload} />}
      {!!item.error && <Problem error={item.error} retry={item.reload} />}
      <Tabs uid={uid} shown={tab} />
      {tab === "messages" ? (
        <div class="stack">
          <Messages uid={uid} />
          <Rejects uid={uid} />
        </div>
      ) : tab === "commands" ? (
        <Commands uid={uid} isOnline={isOnline ?? false} />
      ) : tab === "trace" && may("admin") ? (
        <Trace uid={uid} />
      ) : tab === "connect" ? (
        found && <Connect item={found} />
      ) : (
        <div class="stack">
          <PresenceBand uid={uid} turn={turn} />
          {status.data && <Now status={status.data} item={found} />}
          {status.data && found && <Configuration wanted={status.data.configuration} configId={found.config_id} onDone={status.reload} />}
        </div>
      )}
    </>
  );
}

function Tabs({ uid, shown }: { uid: string; shown: string }) {
  const tabs = [
    { id: "now", name: t(w.now) },
    { id: "messages", name: t(w.messages) },
    { id: "commands", name: t(w.commands) },
    { id: "connect", name: t(w.connect) },
    ...(may("admin") ? [{ id: "trace", name: t(tracing.tab) }] : []),
  ];
  return (
    <nav class="tabs" aria-label={uid}>
      {tabs.map((tab) => (
        <a key={tab.id} href={link(["terminals", uid], { tab: tab.id === "now" ? "" : tab.id })} aria-current={tab.id === shown ? "page" : undefined}>
          {tab.name}
        </a>
      ))}
    </nav>
  );
}

function Now({ status, item }: { status: Status; item: Item | undefined }) {
  return (
    <div class="grid">
      <Card title={t(w.presence)} class="span5">
        <dl class="facts">
          <dt>{t(status.online ? w.connectedFor : w.lastSeen)}</dt>
          <dd>
            <Age at={status.online ? status.since : status.last_seen} />
          </dd>
          {!status.online && status.disconnect_reason && (
            <>
              <dt>{t(w.ended)}</dt>
              <dd>{breakText(status.disconnect_reason)}</dd>
            </>
          )}
          <dt>{t(w.telemetry)}</dt>
          <dd>
            <Age at={status.last_telemetry} />
          </dd>
          <dt>{t(w.address)}</dt>
          <dd class="mono">{status.address || "–"}</dd>
          <dt>{t(w.protocol)}</dt>
          <dd>{status.protocol || "–"}</dd>
          <dt>{t(w.received)}</dt>
          <dd>{status.messages.toLocaleString()}</dd>
          {item && (
            <>
              <dt>{t(w.type)}</dt>
              <dd>
                <Name text={item.type} />
              </dd>
              <dt>{t(w.description)}</dt>
              <dd>
                <Name text={item.description || "–"} />
              </dd>
            </>
          )}
        </dl>
      </Card>
      <Card title={t(w.refusals)} class="span7">
        {![...status.refusals, ...status.address_refusals].length && <p class="dim">{t(w.refusalsNone)}</p>}
        <ul class="messages">
          {[...status.refusals, ...status.address_refusals].map((each) => (
            <li key={`${each.reason}-${each.first_time}-${each.address}`}>
              <span class="line">
                <span class="strong">{reasonText(each.reason, each.text)}</span>
                <span class="dim">
                  {t(w.times, { n: each.count })} · <Age at={each.time} /> · <span class="mono">{each.address}</span>
                </span>
              </span>
              <span>{adviceText(each.reason, each.advice)}</span>
            </li>
          ))}
        </ul>
      </Card>
    </div>
  );
}

/** What its record allows, topic by topic. */
function Topics({ item }: { item: Item }) {
  const { publish, subscribe } = allowedOf(item);
  const listed = (topics: readonly string[]) => (topics.length ? topics.map((each) => <Name key={each} text={each} mono />) : <span class="dim">{t(w.nothingByAccess, { access: item.access })}</span>);
  return (
    <dl class="facts topics">
      <dt>{t(w.mayPublish)}</dt>
      <dd class="line">{listed(publish)}</dd>
      <dt>{t(w.maySubscribe)}</dt>
      <dd class="line">{listed(subscribe)}</dd>
      {item.is_route === 1 && (
        <>
          <dt>{t(w.mayFor)}</dt>
          <dd>{t(w.mayForOthers)}</dd>
        </>
      )}
    </dl>
  );
}

/** With what it proves who it is. */
function Credentials({ item }: { item: Item }) {
  return (
    <dl class="facts credentials">
      <dt>{t(w.clientId)}</dt>
      <dd>
        <Name text={item.uid} mono />
      </dd>
      {item.mode !== "cert" && (
        <>
          <dt>{t(bulk.username)}</dt>
          <dd>
            <Name text={item.username} mono />
          </dd>
          <dt>{t(bulk.pin)}</dt>
          <dd>{may("admin") && item.pin ? <Name text={item.pin} mono /> : <span class="dim">{t(w.pinHidden)}</span>}</dd>
        </>
      )}
    </dl>
  );
}

function Connect({ item }: { item: Item }) {
  const ports = session.value?.mqtt;
  const isCert = item.mode === "cert";
  const isScram = item.dixie === 1 && !isCert;
  const [isSecure, setSecure] = useState(location.protocol === "https:");
  const isChoice = !isCert && !isScram && item.mode === "pwd" && !!ports?.tls_port && ports.port !== null;
  const isTls = isCert || (!!ports && ports.port === null) || (isChoice && isSecure);
  const port = isTls ? ports?.tls_port : ports?.port;
  const how = isCert ? w.howCert : isScram ? w.howScram : item.mode === "auto" ? w.howAuto : w.howPwd;
  const isReady = (item.mode === "pwd" || isCert) && !isScram && !(isTls && !port);
  const made = snippets({
    host: location.hostname,
    port: port ?? 1883,
    uid: item.uid,
    username: item.username,
    pin: may("admin") && item.pin ? item.pin : "<pin>",
    websocketPort: ports?.websocket_port ?? null,
    websocketTlsPort: ports?.websocket_tls_port ?? null,
    isTls,
    isCert,
  });
  return (
    <Card title={t(w.howTo)}>
      <div class="form">
        <p>{t(how, { uid: item.uid })}</p>
        <Credentials item={item} />
        <Topics item={item} />
        {isChoice && (
          <label class="line">
            <input type="checkbox" checked={isSecure} onChange={() => setSecure(!isSecure)} />
            {t(w.overTls)}
          </label>
        )}
        {isTls && <p>{port ? t(isCert || isChoice ? w.tlsOf : w.mqttOff, { port: String(port) }) : t(w.tlsOff)}</p>}
        {isReady &&
          made.map((each) => (
            <div key={each.name} class="form">
              <h3>{each.name}</h3>
              <Code text={each.text} label={each.name} />
            </div>
          ))}
      </div>
    </Card>
  );
}
