/** What completes the cell that is typed in, below it. */
import type { Choice, Completion } from "./complete.ts";
import { t } from "../words/words.ts";
import { w } from "./words.ts";

const HEIGHT_PX = 260;
const WIDTH_PX = 420;

export function Completions(props: { found: Completion; active: number; input: HTMLInputElement; onChoose: (choice: Choice) => void }) {
  const { found, active, input, onChoose } = props;
  const box = input.getBoundingClientRect();
  const isBelow = box.bottom + HEIGHT_PX < innerHeight || box.top < HEIGHT_PX;
  const left = Math.max(4, Math.min(box.left, innerWidth - Math.min(WIDTH_PX, innerWidth - 8) - 4));
  const place = isBelow ? { top: `${box.bottom + 2}px` } : { bottom: `${innerHeight - box.top + 2}px` };
  return (
    <ul class="completions" id="completions" role="listbox" aria-label={t(w.choices)} style={{ left: `${left}px`, ...place }}>
      {found.choices.map((choice, index) => (
        <li
          key={choice.text}
          id={`completion-${index}`}
          role="option"
          aria-selected={index === active}
          onPointerDown={(event) => {
            event.preventDefault(); // the cell keeps the focus
            onChoose(choice);
          }}
        >
          <bdi class="mono">{choice.text}</bdi>
          <bdi class="dim">{choice.note.slice(0, 60)}</bdi>
        </li>
      ))}
    </ul>
  );
}
