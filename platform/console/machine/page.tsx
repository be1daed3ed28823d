/** How the machine is: parts, tasks, disk, backup, memory; for super users. */
import type { Result } from "terrazzo-client";
import { Age, Card, Empty, Head, type Meaning, Name, Problem, sinceText, Tag } from "../parts/basics.tsx";
import { call, page } from "../shell/api.ts";
import { useLoad } from "../shell/hooks.ts";
import { titles } from "../shell/pages.ts";
import { bytesText } from "../shell/toasts.tsx";
import { w as common } from "../words/common.ts";
import { serverText, taskText } from "../words/server-text.ts";
import { type Pair, t } from "../words/words.ts";
import { w } from "./words.ts";

type Status = Result<"get_platform_status">;

const EVERY_MS = 5_000;
const MOST_COMPANIES = 200; // whose names are looked for
const MIB = 1_048_576;
const GB = 1e9;
const STATES: Record<string, { kind: Meaning; word: Pair }> = {
  running: { kind: "good", word: w.running },
  restarting: { kind: "warn", word: w.restarting },
  ended: { kind: "", word: w.ended },
  failed: { kind: "bad", word: w.failed },
};

export function Page() {
  const { data, error, reload } = useLoad((abort) => call("get_platform_status", {}, abort), [], EVERY_MS);
  return (
    <>
      <Head title={t(titles.machine)} sub={data && `${t(w.version)} ${data.version} · ${t(w.up)} ${sinceText(data.up_s * 1_000)}`} />
      {!!error && <Problem error={error} retry={reload} />}
      {data && (
        <div class="grid">
          <Parts data={data} />
          <Disk data={data} />
          <Memory data={data} />
          <Backup data={data} />
          <Tasks data={data} />
          <p class="dim">{t(w.more)}</p>
        </div>
      )}
    </>
  );
}

function Parts({ data }: { data: Status }) {
  return (
    <Card title={t(w.parts)} class="span4">
      <dl class="facts">
        {Object.entries(data.parts).map(([name, reason]) => (
          <>
            <dt>{taskText(name)}</dt>
            <dd>
              <Tag kind={reason ? "bad" : "good"}>{t(reason ? w.notReady : w.ready)}</Tag> {reason && <Name text={serverText(reason, data.reasons[name])} />}
            </dd>
          </>
        ))}
      </dl>
    </Card>
  );
}

function Disk({ data }: { data: Status }) {
  const disk = data.disk;
  const companies = useLoad((abort) => page("get_company_list", { page_size: MOST_COMPANIES }, abort), []);
  const nameOf = (id: number) => companies.data?.rows.find((each) => each.id === id)?.name.slice(0, 64) ?? t(w.company, { id });
  if (!disk) return null;
  const percent = Math.round((100 * disk.free_bytes) / Math.max(1, disk.total_bytes));
  return (
    <Card title={t(w.disk)} class="span4">
      <div class="figure">{t(w.free, { percent })}</div>
      <p class="dim">{t(w.freeOf, { free: (disk.free_bytes / GB).toFixed(1), total: (disk.total_bytes / GB).toFixed(1) })}</p>
      <p>{disk.days_left === null ? <span class="dim">{t(w.grows)}</span> : t(w.days, { n: Math.floor(disk.days_left) })}</p>
      {disk.companies.map((each) => (
        <p key={each.company_id} class="dim">
          <Name text={nameOf(each.company_id)} /> · {t(each.is_full ? w.companyFull : w.companyHas, { has: bytesText(each.series_bytes), most: bytesText(each.most_bytes) })}
        </p>
      ))}
    </Card>
  );
}

function Memory({ data }: { data: Status }) {
  const n = (data.memory_bytes / MIB).toFixed(1);
  return (
    <Card title={t(w.memory)} class="span4">
      <div class="figure">{data.memory_most_bytes ? t(w.memoryOf, { n, most: Math.round(data.memory_most_bytes / MIB) }) : t(w.memoryNone, { n })}</div>
    </Card>
  );
}

function Backup({ data }: { data: Status }) {
  const backup = data.backup;
  if (!backup) {
    return (
      <Card title={t(w.backup)}>
        <Empty title={t(w.noBackup)}>{t(w.noBackupDo)}</Empty>
      </Card>
    );
  }
  return (
    <Card title={t(w.backup)}>
      <dl class="facts">
        <dt>{t(w.lastBackup)}</dt>
        <dd>
          <Age at={backup.ended} />
        </dd>
        {backup.failed && (
          <>
            <dt>{t(w.failedAt)}</dt>
            <dd>
              <Tag kind="bad">{t(w.failed)}</Tag> <Age at={backup.failed} /> <Name text={t(w.said, { text: backup.last_error })} />
            </dd>
          </>
        )}
        <dt>{t(w.target)}</dt>
        <dd>
          <Name text={backup.target} mono />
        </dd>
        <dt>{t(w.size)}</dt>
        <dd>{`${(backup.size_bytes / MIB).toFixed(1)} MiB`}</dd>
        <dt>{t(w.took)}</dt>
        <dd>{`${backup.took_s.toFixed(1)} s`}</dd>
        <dt>{t(w.keys)}</dt>
        <dd>{t(backup.keys === "sealed" ? w.sealed : w.leftOut)}</dd>
      </dl>
    </Card>
  );
}

function Tasks({ data }: { data: Status }) {
  const worst = [...data.tasks].sort((one, other) => other.failures - one.failures || one.name.localeCompare(other.name));
  return (
    <Card title={t(w.tasks)}>
      <div class="scroll" tabIndex={0} role="group" aria-label={t(w.tasks)}>
        <table>
          <thead>
            <tr>
              <th scope="col">{t(w.task)}</th>
              <th scope="col">{t(common.state)}</th>
              <th scope="col" class="num">
                {t(w.failures)}
              </th>
              <th scope="col" class="num narrow-hide">
                {t(w.restarts)}
              </th>
              <th scope="col" class="narrow-hide">
                {t(w.error)}
              </th>
            </tr>
          </thead>
          <tbody>
            {worst.map((each) => (
              <tr key={each.name}>
                <td>
                  <Name text={taskText(each.name)} />
                  {each.last_error && <p class="narrow-only dim">{errorText(each.last_error)}</p>}
                </td>
                <td>
                  <Tag kind={STATES[each.state]?.kind ?? ""}>{t(STATES[each.state]?.word ?? w.ended)}</Tag>
                </td>
                <td class="num">{each.failures}</td>
                <td class="num narrow-hide">{each.restarts}</td>
                <td class="narrow-hide">{errorText(each.last_error)}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </Card>
  );
}

/** A task's last error: its class is what a log is searched for. */
function errorText(name: string): string {
  return name && t(w.errorClass, { name });
}
