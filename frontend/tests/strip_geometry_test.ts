import type { Table } from "../src/api/types.ts";
import { setTitles } from "../src/format/numbers.ts";
import { timePart } from "../src/format/time_parts.ts";
import {
  busyShare,
  columnAt,
  dominant,
  edgesOf,
  fitting,
  outlines,
  stripsOf,
  wideGaps,
} from "../src/views/overview/strip_geometry.ts";

const same = (got: unknown, expected: unknown) => {
  if (JSON.stringify(got) !== JSON.stringify(expected)) throw new Error(`${JSON.stringify(got)} is not expected`);
};

/** Two columns of a device, of which the second is idle in a gap of 150 ns that waits for data, and two of the host. */
const data = {
  scope: ["device", "device", "host", "host"],
  device: [0, 0, null, null],
  time_ns: [1000, 1100, 1000, 1100],
  dur_ns: [100, 100, 100, 100],
  kernel_ns: [50, 0, null, null],
  late_data_loading_ns: [50, 100, null, null],
  gap_start_ns: [1050, 1050, null, null],
  gap_ns: [150, 150, null, null],
  dataloader_ns: [null, null, 60, 100],
  other_ns: [null, null, 40, 0],
};
setTitles([
  { name: "late_data_loading_ns", title: "Waiting for data" },
  { name: "not_shown_ns", title: "Launch or work not recorded" },
]);
const strips = stripsOf({ state: "ready", view: "activity_strip", columns: [], data } as Table);
const [device, host] = strips as [typeof strips[0], typeof strips[0]];

Deno.test("there is a strip for each device and one for the host, with the kinds that have any time", () => {
  same(strips.map((strip) => strip.device), [0, null]);
  same(device.kinds.map(({ kind, total }) => [kind.name, total]), [["kernels", 50], ["waiting for data", 150]]);
  same(host.kinds.map(({ kind, total }) => [kind.name, total]), [["data loading", 160], [
    "Python, or nothing recorded",
    40,
  ]]);
  same(busyShare(device), 0.25);
});

Deno.test("a cause of idle time has the words and the color that it has in Idle", () => {
  const names = ["late_data_loading_ns", "late_python_ns", "late_unrecorded_ns", "blocked_copy_ns", "dependency_ns"];
  for (const name of names) {
    const row = { scope: ["device"], device: [0], time_ns: [0], dur_ns: [100], [name]: [100] };
    const [strip] = stripsOf({ state: "ready", view: "activity_strip", columns: [], data: row } as Table);
    const [{ kind }] = strip!.kinds as [typeof device.kinds[0]], part = timePart(name);
    same([kind.name.slice(1), kind.color], [part.name.slice(1), part.color]);
  }
});

Deno.test("columns end where the next ones begin, and their parts are stacked up to the top", () => {
  const edges = edgesOf(device, 7);
  same(edges, [0, 4, 7]);
  same(outlines(device, edges, 10), ["M0 5.0h4V10.0h-4Z", "M0 0.0h4V5.0h-4ZM4 0.0h3V10.0h-3Z"]);
  same([0, 3.9, 4, 6, 7, 99].map((x) => columnAt(edges, x)), [0, 0, 1, 1, 1, 1]);
});

Deno.test("a low strip shows the kind that takes most of each column", () => {
  same(dominant(host).kinds.map(({ values }) => values), [[100, 100], [0, 0]]);
});

Deno.test("a gap is named once, at its own place, if it is wide enough", () => {
  const gaps = wideGaps(device, edgesOf(device, 200), 40);
  same(gaps.map(({ x, width, length, cause }) => [x, width, length, cause]), [[50, 150, 150, "waiting for data"]]);
  same(wideGaps(device, edgesOf(device, 20), 40), []);
});

Deno.test("a gap has the cause of most of it, and none if none has more than half", () => {
  const causeOf = (loading: number, copying: number, hidden: number) => {
    const columns = {
      ...{ scope: ["device"], device: [0], time_ns: [0], dur_ns: [100], gap_start_ns: [0], gap_ns: [100] },
      ...{ late_data_loading_ns: [loading], blocked_copy_ns: [copying], not_shown_ns: [hidden] },
    };
    const [strip] = stripsOf({ state: "ready", view: "activity_strip", columns: [], data: columns } as Table);
    return wideGaps(strip!, edgesOf(strip!, 200), 40).map(({ cause }) => cause);
  };
  same(causeOf(100, 0, 0), ["waiting for data"]);
  same(causeOf(70, 30, 0), ["mostly waiting for data"]);
  same(causeOf(50, 50, 0), [""]);
  same(causeOf(0, 0, 100), ["launch or work not recorded"]);
});

Deno.test("labels that would overlap or leave the row are left out", () => {
  same(fitting([{ x: 0, width: 50 }, { x: 40, width: 10 }, { x: 60, width: 30 }, { x: 95, width: 20 }], 100), [
    true,
    false,
    true,
    false,
  ]);
});

Deno.test("outliers have their labels first", () => {
  const labels = [{ x: 0, width: 50 }, { x: 40, width: 30, isOutlier: true }, { x: 80, width: 15 }];
  same(fitting(labels, 100), [false, true, true]);
});
