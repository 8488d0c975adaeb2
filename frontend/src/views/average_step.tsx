import type { Table } from "../api.ts";
import { inkOf } from "../categories.ts";
import { exact, percent, scaled, scaleFor } from "../format.ts";
import { Ring } from "../widgets/donut.tsx";

type Numbers = (number | null)[];

/** The mean over complete steps as a table whose parts add up to the step, and as a ring. */
export function AverageStep({ data, whole }: { data: Table["data"]; whole: string }) {
  const means = data.mean_ns as Numbers;
  const shares = data.share_frac as Numbers;
  const spreads = data.stdev_ns as Numbers;
  const scale = scaleFor("duration", means);
  const rows = data.category!.map((category, i) => ({ category: String(category), i }));
  const parts = rows.filter(({ category, i }) => category !== "Step" && (means[i] ?? 0) > 0);
  const range = (i: number) => `${exact(data.min_ns![i], "duration")} to ${exact(data.max_ns![i], "duration")}`;
  const most = Math.max(...parts.map(({ i }) => shares[i] ?? 0));
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
          {rows.map(({ category, i }) => (
            <tr key={category} class={category === "Step" ? "total" : ""}>
              <th scope="row">
                {category !== "Step" && <i class="swatch" style={{ background: inkOf(category) }} />}
                {category === "Step" ? whole : category}
              </th>
              <td class="number" data-tip={`${exact(means[i], "duration")}\n${range(i)}`}>
                {means[i] === null ? "–" : scaled(means[i]!, scale)}
              </td>
              <td class="number quiet" data-tip={exact(spreads[i], "duration")}>
                {spreads[i] === null || spreads[i] === undefined ? "–" : scaled(spreads[i]!, scale)}
              </td>
              <td class="number">{percent(shares[i])}</td>
              <td class="bar">
                {category !== "Step" && (shares[i] ?? 0) > 0 && (
                  <i style={{ background: inkOf(category), width: `${(100 * shares[i]!) / most}%` }} />
                )}
              </td>
            </tr>
          ))}
        </tbody>
      </table>
      {parts.length > 0 && (
        <Ring
          title={whole}
          kind="duration"
          parts={parts.map(({ category, i }) => ({ name: category, value: means[i]!, ink: inkOf(category) }))}
        />
      )}
    </div>
  );
}
