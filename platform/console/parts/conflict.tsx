/** What an editor says when somebody else has changed what is edited: nothing is overwritten without a word. */
import { GatewayError } from "terrazzo-client";
import { t, words } from "../words/words.ts";

const w = words({
  otherDo: ["Nothing was saved. Keep yours and write over theirs, or look at theirs and lose yours.", "未保存任何内容。可保留您的修改并覆盖对方的，或查看对方的修改并放弃您的。"],
  keepMine: ["Save mine over it", "用我的覆盖"],
  takeTheirs: ["Show theirs", "查看对方的"],
});

/** Whether something was not saved because somebody else has saved since it was read. */
export function isAnothers(error: unknown): boolean {
  return error instanceof GatewayError && error.reason?.code === "changed_since_read";
}

export function Conflict({ told, onTheirs, onMine }: { told: string; onTheirs: () => void; onMine: () => void }) {
  return (
    <div class="problem" role="alert">
      <strong>{told}</strong>
      <span>{t(w.otherDo)}</span>
      <span class="line">
        <button class="small" onClick={onTheirs}>
          {t(w.takeTheirs)}
        </button>
        <button class="small" onClick={onMine}>
          {t(w.keepMine)}
        </button>
      </span>
    </div>
  );
}
