/** What came of a balance: how well its target is explained, window by window. */
import type { Result, RowOf } from "terrazzo-client";
import { Card, Empty, Head, Name, Problem, Spark, Tag } from "../parts/basics.tsx";
import { page } from "../shell/api.ts";
import { useLoad } from "../shell/hooks.ts";
import { link, replaceQuery, route } from "../shell/routes.ts";
import { keptReason } from "../words/kept-reasons.ts";
import { language, t } from "../words/words.ts";
import { EditButton, namesOf } from "./results.tsx";
import { item } from "./scripts.ts";
import { w } from "./words.ts";

type Row = RowOf<Result<"get_balance_result_list">>;

const MOST = 200;

interface Fit {
  intercept?: number;
  coefficients?: Record<string, number>;
  points?: number;
  reason?: string;
}

export function BalanceResults({ uid }: { uid: string }) {
  const { data, error, reload } = useLoad((abort) => item("balance", uid, abort), [uid]);
  const objects = useLoad((abort) => (data ? namesOf(data, abort) : Promise.resolve([])), [data?.uid]);
  const chosen = route.value.query.get("object") ?? objects.data?.[0]?.id ?? "";
  const results = useLoad(
    (abort) =>
      chosen
        ? page("get_balance_result_list", { page_size: MOST, where_and: [["class_id", "=", uid], ["object_id", "=", chosen]] }, abort)
        : Promise.resolve({ rows: [] as Row[], total: 0 }),
    [uid, chosen],
  );
  return (
    <>
      <Head name title={data?.name ?? ""} sub={data && <Tag kind={data.is_active ? "good" : ""}>{t(data.is_active ? w.running : w.stopped)}</Tag>}>
        {data && <EditButton kind="balance" script={data} list={["statistics", "balance"]} onDone={reload} />}
        <a class="button" href={link(["statistics", "balance"])}>
          {t(w.balance)}
        </a>
      </Head>
      {!!error && <Problem error={error} retry={reload} />}
      {data && (
        <div class="stack">
          <div class="tools">
            <select aria-label={t(w.object)} value={chosen} onChange={(event) => replaceQuery({ object: event.currentTarget.value })}>
              {(objects.data ?? []).map((each) => (
                <option key={each.id} value={each.id}>
                  {each.name.slice(0, 100)}
                </option>
              ))}
            </select>
            <span class="dim">{`${t(w.target)}: ${data.target}; ${t(w.inputs)}: ${data.inputs.join(", ")}`.slice(0, 300)}</span>
          </div>
          <Card title={t(w.results)}>
            {!!results.error && <Problem error={results.error} retry={results.reload} />}
            {results.data?.rows.length === 0 && <Empty title={t(w.noResults)}>{t(w.noResultsDo)}</Empty>}
            {!!results.data?.rows.length && <Windows rows={results.data.rows} />}
          </Card>
        </div>
      )}
    </>
  );
}

function Windows({ rows }: { rows: readonly Row[] }) {
  const values = rows.map((row) => Number(row.value.correlation)).filter((each) => Number.isFinite(each)).reverse();
  return (
    <>
      <Spark values={values} label={t(w.correlation)} />
      <div class="scroll" tabIndex={0} role="group" aria-label={t(w.results)}>
        <table>
          <thead>
            <tr>
              <th scope="col">{t(w.window)}</th>
              <th scope="col" class="num">
                {t(w.correlation)}
              </th>
              <th scope="col" class="num narrow-hide">
                {t(w.intercept)}
              </th>
              <th scope="col">{t(w.coefficients)}</th>
              <th scope="col" class="num narrow-hide">
                {t(w.points)}
              </th>
            </tr>
          </thead>
          <tbody>
            {rows.map((row) => {
              const fit = readFit(row.value.parameters);
              return (
                <tr key={row.id}>
                  <td class="nowrap">{row.value.time}</td>
                  <td class="num">{row.value.correlation || "–"}</td>
                  <td class="num narrow-hide">{fit.intercept ?? "–"}</td>
                  <td class="mono">
                    <Name text={fit.reason ? keptReason(fit.reason, language.value) : Object.entries(fit.coefficients ?? {}).map(([code, value]) => `${code} ${value}`).join(", ")} />
                  </td>
                  <td class="num narrow-hide">{fit.points ?? "–"}</td>
                </tr>
              );
            })}
          </tbody>
        </table>
      </div>
    </>
  );
}

function readFit(text: string): Fit {
  try {
    return JSON.parse(text) as Fit;
  } catch {
    return {};
  }
}
