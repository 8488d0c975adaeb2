import { h } from "preact";
import type { Table } from "../../api/types.ts";
import { type ShownAnswer, tableOf } from "../../app/answers.ts";
import { decimal, percent, quantity, scaled, scaleFor } from "../../format/numbers.ts";
import { capitalized } from "../../format/steps.ts";
import { deviceNoun, matrixUnits } from "../../format/vendor_words.ts";
import type { Unit } from "./step_unit.ts";

interface Tile {
  title: string;
  doc: string;
  value: string;
  unit: string;
}

/** Numbers under their titles. */
export const Tiles = ({ tiles }: { tiles: Tile[] }) => (
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

function stepTile(overview: Table, unit: Unit): Tile {
  const row = overview.data.category!.indexOf("Step");
  const mean = overview.data.mean_ns![row] as number | null | undefined;
  const spread = overview.data.stdev_ns![row] as number | null | undefined;
  const tile = unit.isWhole
    ? { title: "Recorded time", doc: "No steps were marked: from the start of the first event to the end of the last" }
    : {
      title: `${capitalized(unit.noun)} time`,
      doc: unit.counted ? `Mean over ${unit.counted} ± standard deviation` : `Of ${unit.words}`,
    };
  if (mean === null || mean === undefined) return { ...tile, value: "–", unit: `no ${unit.one}` };
  const scale = scaleFor("duration", [mean]);
  const deviation = spread ? ` ± ${decimal(100 * spread / mean)} %` : "";
  return { ...tile, value: scaled(mean, scale), unit: scale.unit + deviation };
}

const GPU_TILES: [column: string, title: string, unit: string][] = [
  ["utilization_frac", "utilization", "%"],
  ["tc_time_frac", "", "% of kernel time"], // titled as the vendor names these units
  ["occupancy_frac", "Est. occupancy", "%"],
  ["sm_efficiency_frac", "Est. SM efficiency", "%"],
];
const MOST_TILES = 6;
const NEARLY_ALL = 0.995; // of the kernel time

/** The unit of a number, with how much of the kernel time it is of where that isn't all. */
function unitOf({ data }: Table, column: string, unit: string): string {
  if (column === "tc_time_frac" && data.tc_known_frac!.some((share) => share !== 1)) {
    return unit.replace("kernel", "known kernel");
  }
  const least = Math.min(...(data.occupancy_known_frac as number[]).filter(Boolean));
  return column === "occupancy_frac" && least < NEARLY_ALL ? `${unit} · known for ${percent(least)} %` : unit;
}

/** The mean over the devices that have the number, or null; the tip lists each device. */
function gpuTile(gpus: ShownAnswer, [column, name, unit]: (typeof GPU_TILES)[number]): Tile | null {
  const table = tableOf(gpus);
  const title = name === "utilization" ? `${deviceNoun()} ${name}` : name || capitalized(matrixUnits.value);
  if (!table) return { title, doc: "", value: "…", unit: "" };
  const values = table.data[column] ?? [];
  const recorded = values.filter((value): value is number => typeof value === "number");
  const definition = table.columns.find(({ name }) => name === column)?.doc ?? "";
  if (!recorded.length) return null;
  const each = values.map((value, i) => `Device ${table.data.device?.[i]}: ${percent(value as number | null)} %`);
  const mean = recorded.reduce((sum, value) => sum + value, 0) / recorded.length;
  const devices = recorded.length > 1 ? `, mean of ${recorded.length}` : "";
  return {
    title,
    doc: [definition, ...each].join("\n"),
    value: percent(mean),
    unit: unitOf(table, column, unit) + devices,
  };
}

/** Exposed communication, as a share of the step; null without any. */
function communicationTile({ data }: Table, { noun }: Unit): Tile | null {
  const row = data.category!.indexOf("Communication");
  const [mean, share] = [data.mean_ns![row], data.share_frac![row]];
  if (!mean || typeof share !== "number") return null;
  const doc = `Communication of devices or the host while no kernel, copy or fill runs: ${
    quantity(mean as number, "duration")
  }`;
  return {
    title: "Communication",
    doc,
    value: percent(share),
    unit: `% of the ${noun}`,
  };
}

/** The device that came nearest to its limit, or the host where no device's memory was recorded; null without any. */
function memoryTile(shown: ShownAnswer): Tile | null {
  const title = "Peak memory";
  if (shown.answer?.state === "missing") return null;
  const data = tableOf(shown)?.data;
  if (!data) return { title, doc: "", value: "…", unit: "" };
  const peaks = data.peak_allocated_bytes as number[];
  const sizes = data.memory_bytes as (number | null)[];
  const fullness = peaks.map((peak, i) => sizes[i] ? peak / sizes[i]! : data.device![i] === "cpu" ? -1 : 0);
  const row = fullness.indexOf(Math.max(...fullness));
  if (row < 0) return null;
  const scale = scaleFor("bytes", [peaks[row]!]);
  const plus = (row: number) => data.is_relative![row] ? "+" : "";
  const of = !sizes[row] ? ` on ${data.device![row]}` : plus(row) ? "" : ` · ${percent(fullness[row]!)} %`;
  const each = peaks.map((peak, i) => `${data.device![i]}: ${plus(i)}${quantity(peak, "bytes")}`);
  const doc = ["Peak memory allocated for tensors; +: above what was allocated before", ...each].join("\n");
  return { title, doc, value: plus(row) + scaled(peaks[row]!, scale), unit: scale.unit + of };
}

/** Without a GPU: what takes most of the average step. */
function shareTiles({ data }: Table, unit: Unit): Tile[] {
  const shares = data.category!.map((category, i) => ({
    title: String(category),
    share: Number(data.share_frac![i] ?? 0),
    mean: data.mean_ns![i] as number,
  }));
  const largest = shares.filter(({ title, share }) => title !== "Step" && share > 0).sort((a, b) => b.share - a.share);
  return largest.slice(0, GPU_TILES.length).map(({ title, share, mean }) => ({
    title,
    doc: `${quantity(mean, "duration")} of ${unit.words}`,
    value: percent(share),
    unit: `% of the ${unit.noun}`,
  }));
}

/** The numbers to look at first; what the recording lacks is left out, and the next one moves up. */
export function SummaryTiles(
  { overview, gpus, memory, unit }: { overview: Table; gpus: ShownAnswer; memory: ShownAnswer; unit: Unit },
) {
  const hasNoGpu = gpus.answer?.state === "missing";
  const [utilization, ...others] = GPU_TILES.map((tile) => gpuTile(gpus, tile));
  const measures = hasNoGpu ? shareTiles(overview, unit) : [utilization!, communicationTile(overview, unit), ...others];
  const memoryUse = memoryTile(memory);
  const first = [stepTile(overview, unit), ...measures].filter((tile) => tile !== null);
  const tiles = [...first.slice(0, MOST_TILES - (memoryUse ? 1 : 0)), ...(memoryUse ? [memoryUse] : [])];
  return <Tiles tiles={tiles} />;
}
