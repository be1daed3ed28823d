/** The picture of a site plan: shown under widgets, uploaded, taken away. */
import { useEffect, useState } from "preact/hooks";
import { call, isWall, upload } from "../shell/api.ts";
import { tellError } from "../shell/toasts.tsx";
import { isStop } from "../shell/work.ts";
import { t } from "../words/words.ts";
import { w } from "./words.ts";

const TYPES = "image/png,image/jpeg,image/webp,image/gif";

/** The picture; what is on it says the rest. */
export function Picture({ uid }: { uid: string }) {
  const [address, setAddress] = useState(isWall() ? "" : `object/api/v1/file/download/${uid}`);
  useEffect(() => {
    if (!isWall()) return setAddress(`object/api/v1/file/download/${uid}`);
    const abort = new AbortController();
    call("get_wall_picture", { uid }, abort.signal).then(
      (found) => setAddress(`data:${found.type};base64,${found.data}`),
      () => undefined, // the values stand there without it too
    );
    return () => abort.abort();
  }, [uid]);
  return address ? <img class="plan-picture" src={address} alt={t(w.plan)} draggable={false} /> : null;
}

/** Uploads a picture for a page, or takes it away. */
export function PictureChoice({ uid, onChange }: { uid: string; onChange: (uid: string) => void }) {
  const [isBusy, setBusy] = useState(false);
  const take = async (file: File | undefined): Promise<void> => {
    if (!file) return;
    setBusy(true);
    try {
      onChange((await upload(file)).uid);
    } catch (error) {
      if (!isStop(error)) tellError(error);
    } finally {
      setBusy(false);
    }
  };
  return (
    <>
      <label class="button small" aria-busy={isBusy}>
        {t(uid ? w.otherPlan : w.addPlan)}
        <input class="sr" type="file" accept={TYPES} disabled={isBusy} onChange={(event) => void take(event.currentTarget.files?.[0])} />
      </label>
      {uid && (
        <button class="small" onClick={() => onChange("")}>
          {t(w.noPlan)}
        </button>
      )}
    </>
  );
}
