/** One configuration: what is wanted, and what its terminals report instead. */
import { useState } from "preact/hooks";
import type { Result } from "terrazzo-client";
import { Card, Code, Head, Name, Problem, Tag } from "../parts/basics.tsx";
import { Removal } from "../parts/forms.tsx";
import { call, may, page } from "../shell/api.ts";
import { useLoad } from "../shell/hooks.ts";
import { go, link } from "../shell/routes.ts";
import { w as common } from "../words/common.ts";
import { t } from "../words/words.ts";
import { ConfigDialog } from "./config-dialog.tsx";
import { w } from "./config-words.ts";
import { textOf } from "./configuration.tsx";
import { w as terminals } from "./words.ts";

type Item = Result<"get_terminal_config_item">;

const EVERY_MS = 30_000;
const SHOWN = 10; // terminals whose differences are read
const KEYS_SHOWN = 3;
const FIELD = "config_script";

export function Configuration({ uid }: { uid: string }) {
  const item = useLoad((abort) => call("get_terminal_config_item", { uid }, abort), [uid], EVERY_MS);
  const [dialog, setDialog] = useState<"edit" | "remove" | null>(null);
  const [turn, setTurn] = useState(0);
  const found = item.data;
  return (
    <>
      <Head title={found?.name || uid} name sub={found && <Tag kind={found.deliver ? "info" : ""}>{t(found.deliver ? w.isSent : w.isNotSent)}</Tag>}>
        {found && may("admin") && (
          <>
            <button onClick={() => setDialog("edit")}>{t(common.edit)}</button>
            <button class="danger" onClick={() => setDialog("remove")}>
              {t(common.remove)}
            </button>
          </>
        )}
        <a class="button" href={link(["terminals"], { configurations: "1" })}>
          {t(w.back)}
        </a>
      </Head>
      {dialog === "edit" && (
        <ConfigDialog
          uid={uid}
          onClose={() => setDialog(null)}
          onDone={() => {
            item.reload();
            setTurn((n) => n + 1);
          }}
        />
      )}
      {dialog === "remove" && found && (
        <Removal
          name={found.name}
          title={t(w.removeNamed, { name: found.name.slice(0, 64) })}
          text={t(w.removeAsk)}
          remove={() => call("delete_terminal_config", { uid })}
          onDone={() => go(link(["terminals"], { configurations: "1" }))}
          onClose={() => setDialog(null)}
        />
      )}
      {item.error !== undefined && <Problem error={item.error} retry={item.reload} />}
      {found && (
        <div class="grid">
          <Compared item={found} turn={turn} />
          <About item={found} />
        </div>
      )}
    </>
  );
}

function About({ item }: { item: Item }) {
  const isWanted = Object.keys((item.config_script as object | null) ?? {}).length > 0;
  const facts = [
    [t(terminals.description), item.description],
    [t(w.hardware), item.hardware],
    [t(w.firmware), [item.mcu_version, item.remosu_version, item.lua_version].filter(Boolean).join(" · ")],
  ] as const;
  return (
    <Card class="span4" title={t(w.wanted)}>
      <div class="form">
        <dl class="facts">
          {facts.map(([name, value]) => (
            <>
              <dt>{name}</dt>
              <dd>
                <Name text={value || "–"} />
              </dd>
            </>
          ))}
        </dl>
        {isWanted ? <Code text={JSON.stringify(item.config_script, null, 2)} label={FIELD} /> : <p class="dim">{t(w.wantedNone)}</p>}
      </div>
    </Card>
  );
}

async function howMany(uid: string, state: "agrees" | "differs" | "unreported" | null, abort: AbortSignal): Promise<number> {
  return (await page("get_terminal_list", { where_and: [["config_id", "=", uid]], ...(state ? { configuration: state } : {}), page_size: 1 }, abort)).total;
}

/** How many terminals have it, and what they report of it. */
function Compared({ item, turn }: { item: Item; turn: number }) {
  const { uid } = item;
  const isSent = !!item.deliver;
  const { data, error, reload } = useLoad(
    async (abort) => {
      const have = await howMany(uid, null, abort);
      if (!isSent) return { have, agrees: 0, differs: 0, unreported: 0 };
      const [agrees, differs, unreported] = await Promise.all([howMany(uid, "agrees", abort), howMany(uid, "differs", abort), howMany(uid, "unreported", abort)]);
      return { have, agrees, differs, unreported };
    },
    [uid, isSent, turn],
    EVERY_MS,
  );
  const figure = (n: number, word: string, compared: string) => (
    <div>
      <div class="figure">{n ? <a href={link(["terminals"], { config: uid, compared })}>{n.toLocaleString()}</a> : "0"}</div>
      <span class="dim">{word}</span>
    </div>
  );
  return (
    <Card class="span8" title={t(w.comparison)}>
      {error !== undefined && <Problem error={error} retry={reload} />}
      {data && (
        <div class="form">
          <div class="tally">
            {figure(data.have, t(w.have), "")}
            {isSent && figure(data.agrees, t(w.asWanted), "agrees")}
            {isSent && figure(data.differs, t(w.otherwise), "differs")}
            {isSent && figure(data.unreported, t(w.silent), "unreported")}
          </div>
          {isSent ? <Differing uid={uid} count={data.differs} /> : <p>{t(w.comparisonOff)}</p>}
        </div>
      )}
    </Card>
  );
}

/** The first terminals that report something else, with what. */
function Differing({ uid, count }: { uid: string; count: number }) {
  const { data, error, reload } = useLoad(
    async (abort) => {
      if (!count) return [];
      const { rows } = await page("get_terminal_list", { where_and: [["config_id", "=", uid]], configuration: "differs", page_size: SHOWN }, abort);
      return Promise.all(rows.map(async (row) => ({ row, status: await call("get_terminal_status", { terminal_id: row.uid }, abort) })));
    },
    [uid, count],
    EVERY_MS,
  );
  if (error !== undefined) return <Problem error={error} retry={reload} />;
  if (!data) return <p class="dim">{t(common.loading)}</p>;
  if (!data.length) return <p class="dim">{t(w.nobody)}</p>;
  return (
    <>
      <h3>{t(w.who)}</h3>
      <ul class="plain-list">
        {data.map(({ row, status }) => (
          <li key={row.uid}>
            <a href={link(["terminals", row.uid])}>
              <Name text={row.name || row.uid} />
            </a>
            {status.configuration?.difference.slice(0, KEYS_SHOWN).map((each) => (
              <div key={each.key} class="dim">
                <Name text={t(w.difference, { key: each.key, wanted: textOf(each.wanted), reported: textOf(each.reported) })} />
              </div>
            ))}
          </li>
        ))}
      </ul>
      {count > data.length && <a href={link(["terminals"], { config: uid, compared: "differs" })}>{t(w.everybody)}</a>}
    </>
  );
}
