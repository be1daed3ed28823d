/** All mapping and control tables. */
import type { Page, Result, RowOf } from "terrazzo-client";
import { Card, Empty, Head, Name, Problem } from "../parts/basics.tsx";
import { call, may, page, session } from "../shell/api.ts";
import { type Loaded, useLoad } from "../shell/hooks.ts";
import { go, link } from "../shell/routes.ts";
import { tellError } from "../shell/toasts.tsx";
import { w as common } from "../words/common.ts";
import { t } from "../words/words.ts";
import type { TableKind } from "./editing.ts";
import { w } from "./words.ts";

type TableRow = Pick<RowOf<Result<"get_mapping_list">>, "uid" | "name" | "description" | "script" | "last_modified">;

const SHOWN = 200;
const BY_NAME = { page_size: SHOWN, order_by: ["name", "asc"] };

export function TableList() {
  const mappings = useLoad((abort) => page("get_mapping_list", BY_NAME, abort), []);
  const controls = useLoad((abort) => page("get_control_list", BY_NAME, abort), []);
  const isRead = mappings.data && controls.data;
  return (
    <>
      <Head title={t(w.title)} sub={isRead ? t(w.sub, { n: mappings.data?.total ?? 0, m: controls.data?.total ?? 0 }) : ""}>
        {may("admin") && (
          <>
            <button onClick={() => void create("mapping")}>{t(w.newMapping)}</button>
            <button onClick={() => void create("control")}>{t(w.newControl)}</button>
          </>
        )}
      </Head>
      <div class="stack">
        <Tables kind="mapping" title={t(w.mappings)} about={t(w.mappingsAre)} found={mappings} empty={<Empty title={t(w.noMappings)}>{t(w.noMappingsDo)}</Empty>} />
        <Tables kind="control" title={t(w.controls)} about={t(w.controlsAre)} found={controls} empty={<Empty title={t(w.noControls)}>{t(w.noControlsDo)}</Empty>} />
      </div>
    </>
  );
}

interface TablesProps {
  kind: TableKind;
  title: string;
  about: string;
  found: Loaded<Page<TableRow>>;
  empty: preact.ComponentChildren;
}

function Tables({ kind, title, about, found, empty }: TablesProps) {
  const rows = found.data?.rows ?? [];
  return (
    <Card title={title} more={<span class="dim">{about}</span>}>
      {found.error !== undefined && <Problem error={found.error} retry={found.reload} />}
      {!found.data && found.error === undefined && <p class="dim" aria-busy="true">{t(common.loading)}</p>}
      {found.data && !rows.length && empty}
      {rows.length > 0 && (
        <div class="scroll">
          <table>
            <thead>
              <tr>
                <th>{t(common.name)}</th>
                <th class="num">{t(w.rowCount)}</th>
                <th class="narrow-hide num">{t(w.changed)}</th>
              </tr>
            </thead>
            <tbody>
              {rows.map((row) => (
                <tr key={row.uid}>
                  <td>
                    <a href={link(["mapping", kind, row.uid])}>
                      <Name text={row.name} />
                    </a>
                  </td>
                  <td class="num">{Array.isArray(row.script) ? row.script.length : 0}</td>
                  <td class="narrow-hide num dim nowrap">{row.last_modified}</td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
    </Card>
  );
}

async function create(kind: TableKind): Promise<void> {
  const who = session.value?.id ?? 0;
  const fields = { script: "[]", created_by: who, last_modified_by: who, is_available: 1 };
  try {
    const made = kind === "mapping" ? await call("create_mapping", { name: t(w.newMapping), ...fields }) : await call("create_control", { name: t(w.newControl), ...fields });
    go(link(["mapping", kind, made.uid]));
  } catch (error) {
    tellError(error);
  }
}
