/** The dashboards on an object, which show it in the place of their own; administrators put them there. */
import { useState } from "preact/hooks";
import { categoryName } from "../dashboards/words.ts";
import { Card, Name, Problem } from "../parts/basics.tsx";
import { FormDialog } from "../parts/forms.tsx";
import { call, may, page, send } from "../shell/api.ts";
import { useLoad } from "../shell/hooks.ts";
import { link } from "../shell/routes.ts";
import { tell, tellError } from "../shell/toasts.tsx";
import { w as common } from "../words/common.ts";
import { t, words } from "../words/words.ts";

const w = words({
  dashboards: ["Dashboards", "仪表盘"],
  none: ["No dashboard is on it: one that is shows this object in the place of its own.", "尚未关联仪表盘：关联后，仪表盘会以此对象代替其自身的对象显示。"],
  add: ["Put one on it", "关联仪表盘"],
  dashboard: ["Dashboard", "仪表盘"],
  category: ["Category", "类别"],
  categoryHint: ["Other programs ask for an object's dashboard by it; pro is the usual one.", "其他程序按类别查询对象的仪表盘；常用的是 pro。"],
  added: ["The dashboard is on it", "仪表盘已关联"],
  remove: ["Take {name} off", "取消关联 {name}"],
});

const MOST = 500;

export function ObjectDashboards({ id }: { id: string }) {
  const found = useLoad((abort) => call("get_object_dashboard_list", { object_id: id }, abort), [id]);
  const [isAdding, setAdding] = useState(false);
  const remove = async (uid: string): Promise<void> => {
    try {
      await send("object/api/v1/object/deleteDashboard", { object_id: id, dashboard_id: uid });
    } catch (error) {
      tellError(error);
    }
    found.reload();
  };
  return (
    <Card class="span4" title={t(w.dashboards)} more={may("admin") && <button class="small" onClick={() => setAdding(true)}>{t(w.add)}</button>}>
      {found.error !== undefined && <Problem error={found.error} retry={found.reload} />}
      {found.data?.length === 0 && <p class="dim">{t(w.none)}</p>}
      <ul class="controls">
        {found.data?.map((each) => (
          <li key={each.dashboard_id}>
            <a href={link(["dashboards", each.dashboard_id], { object: id })}>
              <Name text={each.name} />
            </a>
            <span class="dim">
              <Name text={categoryName(each.category)} />
            </span>
            {may("admin") && (
              <button class="plain small" aria-label={t(w.remove, { name: each.name.slice(0, 80) })} onClick={() => void remove(each.dashboard_id)}>
                {"✕"}
              </button>
            )}
          </li>
        ))}
      </ul>
      {isAdding && <Adding id={id} onClose={() => setAdding(false)} onDone={found.reload} />}
    </Card>
  );
}

function Adding({ id, onClose, onDone }: { id: string; onClose: () => void; onDone: () => void }) {
  const { data } = useLoad((abort) => page("get_dashboard_list", { page_size: MOST, order_by: ["name", "asc"] }, abort), []);
  if (!data) return null;
  return (
    <FormDialog
      draft={`object-dashboard ${id}`}
      title={t(w.add)}
      submit={t(common.add)}
      initial={{ category: "pro" }}
      fields={[
        { name: "dashboard_id", label: t(w.dashboard), kind: "choice", options: data.rows.map((each) => [each.uid, each.name] as const) },
        { name: "category", label: t(w.category), isRequired: true, most: 16, hint: t(w.categoryHint) },
      ]}
      onSubmit={async (values) => {
        await send("object/api/v1/object/addDashboard", { ...values, object_id: id });
        onClose();
        onDone();
        tell(t(w.added));
      }}
      onClose={onClose}
    />
  );
}
