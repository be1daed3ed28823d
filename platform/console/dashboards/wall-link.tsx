/** The link that shows one dashboard on a wall: made, shown once, ended. */
import { useState } from "preact/hooks";
import { Age, Code, Dialog, Problem } from "../parts/basics.tsx";
import { QUIET, qrOf, qrPath } from "../parts/qr.ts";
import { call } from "../shell/api.ts";
import { useLoad } from "../shell/hooks.ts";
import { link } from "../shell/routes.ts";
import { w as common } from "../words/common.ts";
import { t } from "../words/words.ts";
import { w } from "./words.ts";

export function WallLinkDialog({ uid, object, onClose }: { uid: string; object: string; onClose: () => void }) {
  const found = useLoad((abort) => call("get_wall_link", { uid }, abort), [uid]);
  const [address, setAddress] = useState("");
  const [error, setError] = useState<unknown>();
  const attempt = async (work: () => Promise<void>): Promise<void> => {
    setError(undefined);
    try {
      await work();
      found.reload();
    } catch (failure) {
      setError(failure);
    }
  };
  const make = async (): Promise<void> => {
    const { key } = await call("renew_wall_link", { uid, ...(object ? { object_id: object } : {}) });
    setAddress(new URL(link(["wall"], { key, rotate: "1" }), document.baseURI).href);
  };
  const end = async (): Promise<void> => {
    await call("end_wall_link", { uid });
    setAddress("");
  };
  const known = found.data?.link;
  return (
    <Dialog title={t(w.wallLink)} onClose={onClose}>
      <div class="form">
        <p>{t(w.wallLinkWhat)}</p>
        {(found.error ?? error) !== undefined && <Problem error={found.error ?? error} />}
        {known && (
          <p>
            {t(w.wallLinkThere, { prefix: known.prefix })} · <Age at={known.created} />
          </p>
        )}
        {address && (
          <>
            <Code text={address} label={t(w.wallLink)} />
            <QrCode text={address} />
            <p class="dim">{t(w.wallLinkOnce)}</p>
          </>
        )}
      </div>
      <footer>
        {known && <button onClick={() => void attempt(end)}>{t(w.wallLinkEnd)}</button>}
        <button class="primary" onClick={() => void attempt(make)}>
          {t(known ? w.wallLinkAnother : w.wallLinkMake)}
        </button>
        <button onClick={onClose}>{t(common.close)}</button>
      </footer>
    </Dialog>
  );
}

/** The address for a camera: dark on light in both themes, as readers expect. */
function QrCode({ text }: { text: string }) {
  const code = qrOf(text);
  if (!code) return null;
  const size = code.length + 2 * QUIET;
  return (
    <svg class="qr" viewBox={`0 0 ${size} ${size}`} role="img" aria-label={t(w.wallLinkQr)}>
      <rect width={size} height={size} fill="#fff" />
      <path d={qrPath(code)} fill="#000" shape-rendering="crispEdges" />
    </svg>
  );
}
