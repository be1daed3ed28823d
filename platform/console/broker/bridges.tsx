/** Bridges to other brokers: whether they stand, what waits, why they are down. */
import { Age, Card, Empty, Name, Problem, Tag } from "../parts/basics.tsx";
import { call } from "../shell/api.ts";
import { useLoad } from "../shell/hooks.ts";
import { w as common } from "../words/common.ts";
import { keptReason } from "../words/kept-reasons.ts";
import { language, t } from "../words/words.ts";
import { w } from "./words.ts";

const EVERY_MS = 5_000;

export function Bridges() {
  const { data, error, reload } = useLoad((abort) => call("get_platform_status", {}, abort), [], EVERY_MS);
  if (error) return <Problem error={error} retry={reload} />;
  if (!data) return <p class="dim">{t(common.loading)}</p>;
  if (!data.bridges.length) return <Card><Empty title={t(w.noBridges)}>{t(w.noBridgesDo)}</Empty></Card>;
  return (
    <Card>
      <div class="scroll" tabIndex={0} role="region" aria-label={t(w.bridges)}>
        <table>
          <thead>
            <tr>
              <th scope="col">{t(w.bridge)}</th>
              <th scope="col">{t(common.state)}</th>
              {[w.waits, w.sent, w.received, w.dropped, w.refused].map((title) => (
                <th key={title[0]} scope="col" class="num">
                  {t(title)}
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {data.bridges.map((each) => (
              <tr key={each.name}>
                <td>
                  <Name text={each.name} />
                </td>
                <td>
                  <span class="line">
                    <Tag kind={each.connected_since ? "good" : "bad"}>{t(each.connected_since ? w.connected : w.down)}</Tag>
                    {each.connected_since && <Age at={each.connected_since} />}
                  </span>
                  {each.last_error && (
                    <p class="dim note">
                      <Name text={keptReason(each.last_error, language.value)} />
                    </p>
                  )}
                </td>
                <td class="num">{each.queued.toLocaleString()}</td>
                <td class="num">{each.sent.toLocaleString()}</td>
                <td class="num">{each.received.toLocaleString()}</td>
                <td class="num">{(each.dropped + each.expired).toLocaleString()}</td>
                <td class="num">{(each.refused_by_remote + each.refused_here).toLocaleString()}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </Card>
  );
}
