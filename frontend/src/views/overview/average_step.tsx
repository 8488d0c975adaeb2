import type { Table } from "../../api/types.ts";
import { colorOf } from "./step_categories.ts";
import { exact, percent, type Scale, scaled, scaleFor } from "../../format/numbers.ts";
import { Ring } from "../../charts/donut.tsx";

type Numbers = (number | null)[];

interface Row {
  category: string;
  mean: number | null;
  share: number | null;
  spread: number | null;
  range: string;
}

/** A part of the step, or all of it under the name `whole`. */
function PartRow({ row, scale, most, whole }: { row: Row; scale: Scale; most: number; whole: string }) {
  const { category, mean, share, spread, range } = row;
  const isPart = category !== "Step";
  return (
    <tr class={isPart ? "" : "total"}>
      <th scope="row">
        {isPart && <i class="swatch" style={{ background: colorOf(category) }} />}
        {isPart ? category : whole}
      </th>
      <td class="number" data-tip={`${exact(mean, "duration")}\n${range}`}>
        {mean === null ? "–" : scaled(mean, scale)}
      </td>
      <td class="number quiet" data-tip={exact(spread, "duration")}>
        {spread === null ? "–" : scaled(spread, scale)}
      </td>
      <td class="number">{percent(share)}</td>
      <td class="bar">
        {isPart && (share ?? 0) > 0 && (
          <i
            style={{ background: colorOf(category), width: `${(100 * share!) / most}%` }}
          />
        )}
      </td>
    </tr>
  );
}

/** The mean over complete steps as a table whose parts add up to the step, and as a ring. */
export function AverageStep({ data, whole }: { data: Table["data"]; whole: string }) {
  const means = data.mean_ns as Numbers;
  const scale = scaleFor("duration", means);
  const rows = data.category!.map((category, i): Row => ({
    category: String(category),
    mean: means[i] ?? null,
    share: (data.share_frac as Numbers)[i] ?? null,
    spread: (data.stdev_ns as Numbers)[i] ?? null,
    range: `${exact(data.min_ns![i], "duration")} to ${exact(data.max_ns![i], "duration")}`,
  }));
  const parts = rows.filter(({ category, mean }) => category !== "Step" && (mean ?? 0) > 0);
  const most = Math.max(...parts.map(({ share }) => share ?? 0));
  return (
    <div class="mean">
      <table class="average">
        <thead>
          <tr>
            <th scope="col">Category</th>
            <th scope="col" class="number">{scale.unit}</th>
            <th scope="col" class="number" data-tip="Standard deviation over the complete steps">±</th>
            <th scope="col" class="number">%</th>
            <td />
          </tr>
        </thead>
        <tbody>
          {rows.map((row) => <PartRow key={row.category} row={row} scale={scale} most={most} whole={whole} />)}
        </tbody>
      </table>
      {parts.length > 0 && (
        <Ring
          title={whole}
          kind="duration"
          parts={parts.map(({ category, mean }) => ({ name: category, value: mean!, color: colorOf(category) }))}
        />
      )}
    </div>
  );
}
