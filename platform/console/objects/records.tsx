/** What people wrote of an object: service records, offline data, files. */
import { useState } from "preact/hooks";
import { Card, Name, Problem } from "../parts/basics.tsx";
import { may, path, pathPage } from "../shell/api.ts";
import { useLoad } from "../shell/hooks.ts";
import { t } from "../words/words.ts";
import { CATEGORIES, w as editing } from "./edit-words.ts";
import { RecordDialog } from "./record-dialog.tsx";
import type { ObjectItem } from "./object.tsx";
import { w } from "./words.ts";

interface Service {
  id: number;
  name: string;
  category: string;
  staff_name: string;
  service_at: string;
}

interface Collected {
  id: number;
  name: string;
  value: string;
  collector: string;
  collect_at: string;
}

interface StoredFile {
  name: string;
  url: string;
}

const LAST = "8";

export function Records({ row }: { row: ObjectItem }) {
  const where_and = JSON.stringify([["object_id", "=", row.id]]);
  const query = { where_and, page_size: LAST, order_by: '["id", "desc"]' };
  const [isWriting, setWriting] = useState(false);
  const services = useLoad((abort) => pathPage<Service>("service/api/v1/service/getList", query, abort), [row.id]);
  const collected = useLoad((abort) => pathPage<Collected>("offline/api/v1/collectos/getList", query, abort), [row.id]);
  return (
    <>
      <Card class="span4" title={t(w.records)} more={may("operator") && <button class="small" onClick={() => setWriting(true)}>{t(editing.record)}</button>}>
        {isWriting && <RecordDialog row={row} onClose={() => setWriting(false)} onDone={services.reload} />}
        {services.error !== undefined && <Problem error={services.error} retry={services.reload} />}
        {services.data && !services.data.rows.length && <p class="dim">{t(w.noRecords)}</p>}
        <ul class="controls">
          {services.data?.rows.map((each) => (
            <li key={each.id}>
              <Name text={[categoryWord(each.category), each.name].filter(Boolean).join(": ")} />
              <span class="dim">
                <Name text={each.staff_name} />
              </span>
              <span class="dim nowrap">{each.service_at.slice(0, 10)}</span>
            </li>
          ))}
        </ul>
      </Card>
      <Card class="span4" title={t(w.collected)}>
        {collected.error !== undefined && <Problem error={collected.error} retry={collected.reload} />}
        {collected.data && !collected.data.rows.length && <p class="dim">{t(w.noCollected)}</p>}
        <ul class="controls">
          {collected.data?.rows.map((each) => (
            <li key={each.id}>
              <Name text={`${each.name} = ${each.value}`} />
              <span class="dim">
                <Name text={each.collector} />
              </span>
              <span class="dim nowrap">{each.collect_at}</span>
            </li>
          ))}
        </ul>
      </Card>
      <Files id={row.file_id} />
    </>
  );
}

function categoryWord(category: string): string {
  const known = CATEGORIES[category];
  return known ? t(known) : category;
}

function Files({ id }: { id: number | null }) {
  const found = useLoad(
    async (abort) => (id ? ((await path("object/api/v1/file/getItem", { id: String(id) }, abort)) as { file: StoredFile[] }) : null),
    [id],
  );
  const files = Array.isArray(found.data?.file) ? found.data.file : [];
  return (
    <Card class="span4" title={t(w.files)}>
      {found.error !== undefined && <Problem error={found.error} retry={found.reload} />}
      {!files.length && <p class="dim">{t(w.noFiles)}</p>}
      <ul class="controls">
        {files.map((each) => (
          <li key={each.url}>
            <StoredLink file={each} />
          </li>
        ))}
      </ul>
    </Card>
  );
}

/** A link to what the platform keeps; addresses of others stay text, and are not followed. */
function StoredLink({ file }: { file: StoredFile }) {
  const own = /^\/?(object\/api\/v1\/file\/download\/[\w-]+)$/.exec(String(file.url ?? ""))?.[1];
  if (!own) return <Name text={String(file.name ?? "")} />;
  return (
    <a href={own} download>
      <Name text={file.name} />
    </a>
  );
}
