/** The files of an object: opened and saved by everybody; administrators add some and remove them. */
import { useEffect, useRef, useState } from "preact/hooks";
import { GatewayError } from "terrazzo-client";
import { Card, Name, Problem } from "../parts/basics.tsx";
import { Removal } from "../parts/forms.tsx";
import { may, page, pathPage, send, upload } from "../shell/api.ts";
import { useLoad } from "../shell/hooks.ts";
import { route } from "../shell/routes.ts";
import { tell, tellError } from "../shell/toasts.tsx";
import { isStop } from "../shell/work.ts";
import { w as common } from "../words/common.ts";
import { t } from "../words/words.ts";
import { attach, detach, discard, type FileAsk, MOST_FILES, ownAddress, readFiles, type StoredFile } from "./attached.ts";
import type { ObjectItem } from "./object.tsx";
import { w } from "./record-words.ts";
import { useShownFirst } from "./shown-first.ts";

const ASK: FileAsk = { pathPage, send };

export function Files({ row, onDone }: { row: ObjectItem; onDone: () => void }) {
  const id = row.file_id;
  const found = useLoad(async (abort) => (id ? readFiles(ASK, id, abort) : null), [id]);
  const [removed, setRemoved] = useState<StoredFile | null>(null);
  const [failure, setFailure] = useState<unknown>();
  const files = found.data ?? [];
  useShownFirst("file", route.value.query.get("record") === "file" && found.data !== undefined);
  const again = () => {
    found.reload();
    onDone();
  };
  const more = may("admin") && files.length < MOST_FILES && <Adding row={row} room={MOST_FILES - files.length} onDone={again} onFail={setFailure} />;
  return (
    <Card class="span4 record-file" title={t(w.files)} more={more}>
      {found.error !== undefined && <Problem error={found.error} retry={found.reload} />}
      {failure !== undefined && <Problem error={failure} />}
      {found.data !== undefined && !files.length && <p class="dim">{t(w.noFiles)}</p>}
      <ul class="controls files">
        {files.map((each) => (
          <li key={each.uid}>
            <StoredLink file={each} />
            {ownAddress(each.url) ? (
              <a href={ownAddress(each.url) ?? ""} download={each.name} aria-label={t(w.fileSave, { name: each.name.slice(0, 80) })}>
                {t(common.save)}
              </a>
            ) : (
              <span />
            )}
            {may("admin") ? (
              <button class="plain small" aria-label={t(w.fileRemoveNamed, { name: each.name.slice(0, 80) })} onClick={() => setRemoved(each)}>
                {"✕"}
              </button>
            ) : (
              <span />
            )}
          </li>
        ))}
      </ul>
      {removed && id !== null && <Removing id={id} file={removed} onDone={again} onClose={() => setRemoved(null)} />}
    </Card>
  );
}

/** A link to what the platform keeps; addresses of others stay text, and are not followed. */
function StoredLink({ file }: { file: StoredFile }) {
  const own = ownAddress(file.url);
  if (!own) return <Name text={String(file.name ?? "")} />;
  return (
    <a href={own} target="_blank" rel="noopener">
      <Name text={file.name} />
    </a>
  );
}

/** Uploads files one after the other, with what is under way, though the page is left meanwhile; what was uploaded and could not be attached does not stay. */
function Adding({ row, room, onDone, onFail }: { row: ObjectItem; room: number; onDone: () => void; onFail: (failure: unknown) => void }) {
  const [at, setAt] = useState("");
  const isLeft = useRef(false);
  useEffect(() => () => void (isLeft.current = true), []);
  const add = async (chosen: readonly File[]): Promise<void> => {
    const kept: StoredFile[] = [];
    onFail(undefined);
    try {
      for (const [i, file] of chosen.entries()) {
        setAt(t(w.fileUnderWay, { i: i + 1, n: chosen.length }));
        const { uid, name, url } = await upload(file);
        kept.push({ uid, name, url });
      }
      await attach(ASK, row, kept);
      tell(t(w.filesAdded, { n: kept.length }));
    } catch (error) {
      if (!isStop(error)) (isLeft.current ? tellError : onFail)(error); // it goes on where the page is left
      for (const { uid } of kept) await discard(ASK, uid).catch(() => undefined); // it is said already why
    } finally {
      setAt("");
      onDone();
    }
  };
  return (
    <label class="button small" aria-busy={!!at}>
      {at || t(w.fileAdd)}
      <input
        class="sr"
        type="file"
        multiple
        disabled={!!at}
        onChange={(event) => {
          const chosen = [...(event.currentTarget.files ?? [])].slice(0, room);
          event.currentTarget.value = ""; // the same file may be chosen again
          if (chosen.length) void add(chosen);
        }}
      />
    </label>
  );
}

function Removing({ id, file, onDone, onClose }: { id: number; file: StoredFile; onDone: () => void; onClose: () => void }) {
  const users = useLoad(async (abort) => (await page("get_object_list", { where_and: [["file_id", "=", id]], page_size: 1 }, abort)).total, [id]);
  const remove = async (): Promise<void> => {
    await detach(ASK, id, file.uid);
    try {
      await discard(ASK, file.uid);
    } catch (error) {
      if (!(error instanceof GatewayError)) throw error; // another record names it: it stays for that one
    }
  };
  const gone = (): void => {
    onClose();
    onDone();
  };
  if (users.data === undefined && users.error === undefined) return null;
  const others = (users.data ?? 1) - 1;
  const text = others > 0 ? t(w.fileRemoveShared, { n: others }) : t(w.fileRemoveAsk);
  return <Removal name={file.name} title={t(w.fileRemoveNamed, { name: file.name.slice(0, 80) })} text={text} remove={remove} onDone={gone} onClose={onClose} />;
}
