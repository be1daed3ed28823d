/** Retainers: which keep labels open, and on which objects. */
import { Card, Empty, Head, Name, Problem, Tag } from "../parts/basics.tsx";
import { useLoad } from "../shell/hooks.ts";
import { link } from "../shell/routes.ts";
import { ScriptList } from "../statistics/list.tsx";
import { EditButton, namesOf, Rows } from "../statistics/results.tsx";
import { item } from "../statistics/scripts.ts";
import { w as scripts } from "../statistics/words.ts";
import { t } from "../words/words.ts";

const BASE = ["events", "retainers"];

export function Retainers() {
  return <ScriptList kind="retainer" label={t(scripts.retainers)} base={BASE} />;
}

/** One of them. */
export function Retainer({ uid }: { uid: string }) {
  const { data, error, reload } = useLoad((abort) => item("retainer", uid, abort), [uid]);
  const objects = useLoad((abort) => (data?.object_list.length ? namesOf(data, abort) : Promise.resolve([])), [data?.object_list]);
  return (
    <>
      <Head name title={data?.name ?? ""} sub={data && <Tag kind={data.is_active ? "good" : ""}>{t(data.is_active ? scripts.running : scripts.stopped)}</Tag>}>
        {data && <EditButton kind="retainer" script={data} list={BASE} onDone={reload} />}
        <a class="button" href={link(BASE)}>
          {t(scripts.retainers)}
        </a>
      </Head>
      {!!error && <Problem error={error} retry={reload} />}
      {data && (
        <div class="stack">
          <Rows kind="retainer" script={data} />
          <Card title={t(scripts.objects)}>
            {objects.data?.length !== 0 ? (
              <ul class="stack">
                {objects.data?.map((each) => (
                  <li key={each.id}>
                    <a href={link(["objects", each.id])}>
                      <Name text={each.name} />
                    </a>
                  </li>
                ))}
              </ul>
            ) : (
              <Empty title={t(scripts.objectsNone)}>{t(scripts.objectsNoneDo)}</Empty>
            )}
          </Card>
        </div>
      )}
    </>
  );
}
