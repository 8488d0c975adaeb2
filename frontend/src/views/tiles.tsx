import type { Table } from "../api.ts";
import { percent, quantity, scaled, scaleFor } from "../format.ts";
import type { Shown } from "../state.ts";

interface Tile {
  title: string;
  doc: string;
  value: string;
  unit: string;
}

function stepTile(overview: Table): Tile {
  const row = overview.data.category!.indexOf("Step");
  const mean = overview.data.mean_ns![row] as number | null | undefined;
  const spread = overview.data.stdev_ns![row] as number | null | undefined;
  const tile = { title: "Step time", doc: "Mean over the complete steps ± standard deviation" };
  if (mean === null || mean === undefined) return { ...tile, value: "–", unit: "no complete step" };
  const scale = scaleFor("duration", [mean]);
  const deviation = spread ? ` ± ${percent(spread / mean)} %` : "";
  return { ...tile, value: scaled(mean, scale), unit: scale.unit + deviation };
}

const GPU_TILES: [column: string, title: string, unit: string][] = [
  ["utilization_frac", "GPU utilisation", "%"],
  ["sm_efficiency_frac", "Est. SM efficiency", "%"],
  ["occupancy_frac", "Est. occupancy", "%"],
  ["tc_time_frac", "Tensor cores", "% of kernel time"],
];

/** The mean over the devices that have the number; hovering tells the devices apart. */
function gpuTile(gpus: Shown, [column, title, unit]: (typeof GPU_TILES)[number]): Tile {
  const { answer, earlier } = gpus;
  const table = answer?.state === "ready" ? answer : earlier;
  if (!table) return { title, doc: "", value: "…", unit: "" };
  const values = table.data[column] ?? [];
  const known = values.filter((value): value is number => typeof value === "number");
  const definition = table.columns.find(({ name }) => name === column)?.doc ?? "";
  if (!known.length) return { title, doc: definition, value: "–", unit: "not recorded" };
  const each = values.map((value, i) => `Device ${table.data.device?.[i]}: ${percent(value as number | null)} %`);
  const mean = known.reduce((sum, value) => sum + value, 0) / known.length;
  const devices = known.length > 1 ? `, mean of ${known.length}` : "";
  return { title, doc: [definition, ...each].join("\n"), value: percent(mean), unit: unit + devices };
}

/** Without a GPU: what takes most of the average step. */
function shareTiles({ data }: Table): Tile[] {
  const shares = data.category!.map((category, i) => ({
    title: String(category),
    share: Number(data.share_frac![i] ?? 0),
    mean: data.mean_ns![i] as number,
  }));
  const largest = shares.filter(({ title, share }) => title !== "Step" && share > 0).sort((a, b) => b.share - a.share);
  return largest.slice(0, GPU_TILES.length).map(({ title, share, mean }) => ({
    title,
    doc: `${quantity(mean, "duration")} of the average step`,
    value: percent(share),
    unit: "% of the step",
  }));
}

/** The numbers to look at first. */
export function Tiles({ overview, gpus }: { overview: Table; gpus: Shown }) {
  const hasNoGpu = gpus.answer?.state === "missing";
  const others = hasNoGpu ? shareTiles(overview) : GPU_TILES.map((tile) => gpuTile(gpus, tile));
  const tiles = [stepTile(overview), ...others];
  return (
    <dl class="tiles">
      {tiles.map(({ title, doc, value, unit }) => (
        <div key={title} class="card" data-tip={doc || undefined}>
          <dt>{title}</dt>
          <dd>
            <b>{value}</b> {unit}
          </dd>
        </div>
      ))}
    </dl>
  );
}
