/** All dashboards. */
import { Empty, Head, Name, Problem } from "../parts/basics.tsx";
import { call, may, page } from "../shell/api.ts";
import { useLoad } from "../shell/hooks.ts";
import { go, link } from "../shell/routes.ts";
import { tellError } from "../shell/toasts.tsx";
import { w as common } from "../words/common.ts";
import { t } from "../words/words.ts";
import { addPage } from "./record.ts";
import { w } from "./words.ts";

const SHOWN = 200;

export function DashboardList() {
  const found = useLoad((abort) => page("get_dashboard_list", { page_size: SHOWN, order_by: ["name", "asc"] }, abort), []);
  const rows = found.data?.rows ?? [];
  return (
    <>
      <Head title={t(w.title)} sub={found.data ? t(w.sub, { n: found.data.total }) : ""}>
        {may("admin") && <button onClick={() => void create()}>{t(w.create)}</button>}
      </Head>
      {found.error !== undefined && <Problem error={found.error} retry={found.reload} />}
      {found.data && !rows.length && (
        <Empty title={t(w.none)}>
          {t(w.noneDo)} {!may("admin") && t(w.needAdmin)}
        </Empty>
      )}
      {rows.length > 0 && (
        <section class="card scroll">
          <table>
            <thead>
              <tr>
                <th>{t(common.name)}</th>
                <th class="narrow-hide">{t(w.category)}</th>
                <th>{t(w.changed)}</th>
              </tr>
            </thead>
            <tbody>
              {rows.map((each) => (
                <tr key={each.uid}>
                  <td>
                    <a href={link(["dashboards", each.uid])}>
                      <Name text={each.name} />
                    </a>
                  </td>
                  <td class="narrow-hide">
                    <Name text={each.category} />
                  </td>
                  <td class="dim nowrap">{each.last_modified}</td>
                </tr>
              ))}
            </tbody>
          </table>
        </section>
      )}
    </>
  );
}

async function create(): Promise<void> {
  try {
    const [script] = addPage({}, t(w.newPage, { n: 1 }));
    const { uid } = await call("create_dashboard", { name: t(w.newName), category: "pro", script: JSON.stringify(script) });
    go(link(["dashboards", uid], { edit: "1" }));
  } catch (error) {
    tellError(error);
  }
}
