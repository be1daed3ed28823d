/** Client ids that tried to log in and are no terminal's; each is registered in one step. */
import { useState } from "preact/hooks";
import { Age, Card, Empty, Head, Name, Problem } from "../parts/basics.tsx";
import { may, page } from "../shell/api.ts";
import { useLoad } from "../shell/hooks.ts";
import { link } from "../shell/routes.ts";
import { t } from "../words/words.ts";
import { adviceText, reasonText } from "../words/reasons.ts";
import { words as bulk } from "./bulk-words.ts";
import { Register } from "./register.tsx";
import { w } from "./words.ts";

const EVERY_MS = 30_000;
const MOST = 200;

export function Unknown() {
  const { data, error, reload } = useLoad((abort) => page("get_unknown_terminal_list", { page_size: MOST }, abort), [], EVERY_MS);
  const [uid, setUid] = useState<string | null>(null);
  return (
    <>
      <Head title={t(w.unknownOnes)} sub={t(w.unknownTitle)}>
        <a class="button" href={link(["terminals"])}>
          {t(w.back)}
        </a>
      </Head>
      {!!error && <Problem error={error} retry={reload} />}
      <Card>
        {data?.rows.length === 0 && <Empty title={t(w.unknownNone)}>{t(w.unknownNoneDo)}</Empty>}
        {!!data?.rows.length && (
          <div class="scroll" tabIndex={0} role="region" aria-label={t(w.unknownOnes)}>
            <table>
              <thead>
                <tr>
                  <th scope="col">{t(w.uid)}</th>
                  <th scope="col">{t(w.why)}</th>
                  <th scope="col">{t(w.from)}</th>
                  <th scope="col" class="num">
                    {t(w.tries)}
                  </th>
                  <th scope="col" class="num">
                    {t(w.last)}
                  </th>
                  <th scope="col">
                    <span class="sr">{t(bulk.register)}</span>
                  </th>
                </tr>
              </thead>
              <tbody>
                {data.rows.map((row) => (
                  <tr key={row.uid}>
                    <td>
                      <Name text={row.uid} mono />
                    </td>
                    <td class="wide">
                      {reasonText(row.reason, row.text)} <span class="dim">{adviceText(row.reason, row.advice)}</span>
                    </td>
                    <td class="mono">{row.address}</td>
                    <td class="num">{row.count.toLocaleString()}</td>
                    <td class="num nowrap">
                      <Age at={row.last_time} />
                    </td>
                    <td class="num">
                      {may("admin") && (
                        <button class="small" aria-label={t(bulk.registerAsk, { uid: row.uid })} onClick={() => setUid(row.uid)}>
                          {t(bulk.register)}
                        </button>
                      )}
                    </td>
                  </tr>
                ))}
              </tbody>
            </table>
          </div>
        )}
      </Card>
      {uid !== null && (
        <Register
          uid={uid}
          onClose={() => {
            setUid(null);
            reload();
          }}
        />
      )}
    </>
  );
}
