/** A value to be read: indented, its types told apart, and folded where it is long. */
import { useState } from "preact/hooks";
import { t, words } from "../words/words.ts";
import { jsonLines } from "./json-lines.ts";

const w = words({
  unfold: ["All {n} lines", "全部 {n} 行"],
  fold: ["Fewer lines", "收起"],
});

const FOLDED = 12;

export function Json({ value }: { value: unknown }) {
  const [isOpen, setOpen] = useState(false);
  const { lines, isCut } = jsonLines(value);
  const isLong = lines.length > FOLDED + 2; // a button for one line more would take its place
  const shown = isLong && !isOpen ? lines.slice(0, FOLDED) : lines;
  return (
    <div class="json">
      <pre>
        {shown.map(({ depth, tokens }, i) => (
          <>
            {"  ".repeat(depth)}
            {tokens.map((each, j) => (
              <bdi key={j} class={`json-${each.kind}`}>
                {each.text}
              </bdi>
            ))}
            {i < shown.length - 1 || (isLong && !isOpen) || isCut ? "\n" : ""}
          </>
        ))}
        {(shown.length < lines.length || isCut) && "…"}
      </pre>
      {isLong && (
        <button class="small" aria-expanded={isOpen} onClick={() => setOpen(!isOpen)}>
          {isOpen ? t(w.fold) : t(w.unfold, { n: lines.length })}
        </button>
      )}
    </div>
  );
}
