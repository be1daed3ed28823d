/** What a chart shows as a table, and as a file: a row a time, a column a variable. */
import { clock } from "../shell/clock.ts";
import { t } from "../words/words.ts";
import type { ChartVariable } from "./chart.tsx";
import type { Curve } from "./curve.ts";
import { keepFile } from "./export.ts";
import type { ChartView } from "./link.ts";
import { csvText, valueRows } from "./rows.ts";
import { numberText } from "./value-axis.ts";
import type { Range } from "./window.ts";
import { w } from "./words.ts";

const ROWS_MAX = 500;
const FILE_ROWS_MAX = 1_000_000;

/** What has the curves of a chart. */
export interface Valued {
  readonly shown: Range;
  curve: (key: string) => Curve;
  curveBefore: (key: string) => Curve;
}

interface ValueColumn {
  key: string;
  name: string;
  curve: Curve;
  variable: ChartVariable;
}

/** What a table and a file have: a column a variable, and where it is compared one more of the week before. */
function columnsOf(variables: ChartVariable[], model: Valued, isCompared: boolean): ValueColumn[] {
  const now = variables.map((variable) => ({ key: variable.key, name: columnName(variable), curve: model.curve(variable.key), variable }));
  if (!isCompared) return now;
  const before = now.map((each) => ({ ...each, key: `${each.key} -7`, name: t(w.weekBefore, { name: each.name }), curve: model.curveBefore(each.key) }));
  return [...now, ...before];
}

/** Offers the values of the view as a file. */
export function keepValues(title: string, variables: ChartVariable[], model: Valued | null, isCompared: boolean): void {
  if (!model) return;
  const columns = columnsOf(variables, model, isCompared);
  const rows = valueRows(columns.map((each) => each.curve), model.shown, FILE_ROWS_MAX);
  const text = csvText(columns.map((each) => each.name), rows, clock.zone.value);
  keepFile(new Blob([text], { type: "text/csv;charset=utf-8" }), `${title}.csv`);
}

const columnName = (each: ChartVariable): string => `${each.name || each.key}${each.unit ? ` [${each.unit}]` : ""}`;

function cellText(variable: ChartVariable | undefined, value: number | null): string {
  if (value === null) return "";
  return variable?.stateName?.(value) ?? numberText(value, variable?.decimals ?? null);
}

/** The values of the view as a table, the newest first; another `turn`: the model has other curves. */
export function Values({ variables, model, view }: { variables: ChartVariable[]; model: Valued; view: ChartView; turn: number }) {
  const columns = columnsOf(variables, model, view.compare);
  const rows = valueRows(columns.map((each) => each.curve), model.shown, ROWS_MAX).reverse();
  if (!rows.length) return <p class="dim">{t(w.noValues)}</p>;
  return (
    <div class="scroll chart-values" tabIndex={0} role="region" aria-label={t(w.table)}>
      <table>
        <thead>
          <tr>
            <th>
              {t(w.time)} {clock.offset.value}
            </th>
            {columns.map((each) => (
              <th key={each.key} class="num">
                <bdi>{each.name}</bdi>
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map((row) => (
            <tr key={row.at}>
              <td class="nowrap">{clock.format(row.at)}</td>
              {row.values.map((value, index) => (
                <td key={index} class="num">
                  {cellText(columns[index]?.variable, value)}
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
      {rows.length === ROWS_MAX && <p class="dim">{t(w.newest, { n: ROWS_MAX })}</p>}
    </div>
  );
}
