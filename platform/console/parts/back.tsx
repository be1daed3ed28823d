/** Says that what stands in a form was typed before, and begins anew where that is not wanted. */
import { t, words } from "../words/words.ts";

const w = words({
  back: ["You typed this before; it is not saved yet.", "这是您之前输入的内容，尚未保存。"],
  anew: ["Start over", "重新填写"],
});

export function Back({ isBack, onAnew }: { isBack: boolean; onAnew: () => void }) {
  if (!isBack) return null;
  return (
    <p class="line dim" role="status">
      <span>{t(w.back)}</span>
      <button type="button" class="small" onClick={onAnew}>
        {t(w.anew)}
      </button>
    </p>
  );
}
