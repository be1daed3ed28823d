/** A field for a day, written as the platform writes days: a browser's own one is in the browser's language, whichever the page has. */
import { t, words } from "../words/words.ts";
import { readDay } from "./dates.ts";

const w = words({
  form: ["YYYY-MM-DD", "年-月-日"],
  wrong: ["Write the day as year, month and day, such as 2026-03-01.", "请按年、月、日填写，例如 2026-03-01。"],
});

/** `onChange` hears of a day, or of none; what is neither is said at the field, and not taken. */
export function DayField({ label, value, onChange }: { label: string; value: string; onChange: (day: string) => void }) {
  return (
    <label class="line dim">
      {label}{" "}
      <input
        class="day-field"
        inputMode="numeric"
        maxLength={16}
        placeholder={t(w.form)}
        value={value}
        onInput={(event) => event.currentTarget.setCustomValidity("")}
        onChange={(event) => {
          const field = event.currentTarget;
          const day = field.value.trim() === "" ? "" : readDay(field.value);
          if (day === null) {
            field.setCustomValidity(t(w.wrong));
            field.reportValidity();
            return;
          }
          field.value = day;
          onChange(day);
        }}
      />
    </label>
  );
}
