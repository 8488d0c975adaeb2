import { strictEqual as is } from "node:assert/strict";
import { mostCauses, mostly, timePart, withLaunches } from "../src/format/time_parts.ts";
import theme from "../src/styles/theme.css" with { type: "text" };
import timeline from "../src/styles/timeline.css" with { type: "text" };

const SETS = {
  "causes of idle time":
    "busy_ns late_data_loading_ns late_synchronizing_ns late_runtime_ns late_operator_ns late_annotation_ns " +
    "late_python_ns late_unrecorded_ns launch_latency_ns dependency_ns blocked_copy_ns graph_launch_ns not_shown_ns " +
    "unexplained_ns",
  "parts of the critical path":
    "kernel communication copy launch between_kernels unexplained data host_operator host_python host_annotation " +
    "host_unrecorded host_sync",
  "parts of the path across ranks":
    "computation;copy;device communication;host communication;launch latency;runtime call;" +
    "between GPU events;unexplained wait;data loading;operator;synchronization;between operators;transfer;collective;" +
    "before the step",
  "parts of a rank's step": "computation_ns exposed_transfer_ns exposed_wait_ns exposed_copies_ns idle_loading_ns " +
    "idle_collecting_ns idle_other_ns",
  "parts of a server's phase":
    "gemm;copy;communication;idle: operators and launches;idle: queued;idle: synchronizing;" +
    "idle: waiting;idle: input preparation;idle: scheduling;idle: sampling;idle: detokenizing;idle: other;" +
    "idle: unrecorded;not shown",
};
const LEAST = 0.065; // in Oklab: two colors side by side that anybody tells apart who sees colors

const variables = new Map([...`${theme}${timeline}`.matchAll(/--([\w-]+): light-dark\((#\w+), (#\w+)\)/g)]
  .map(([, name, ...themes]) => [name!, themes]));

const rgbOf = (hex: string) =>
  (hex.slice(1).match(hex.length > 4 ? /../g : /./g) ?? []).map((part) =>
    parseInt(part.repeat(3 - part.length), 16) / 255
  );

/** Red, green and blue from 0 to 1 of a color of the page's styles in a theme. */
function channels(color: string, theme: number): number[] {
  const variable = /^var\(--([\w-]+)\)$/.exec(color);
  if (variable) return rgbOf(variables.get(variable[1]!)![theme]!);
  const mixed = /^color-mix\(in srgb, (.+) (\d+)%, (.+)\)$/.exec(color);
  if (!mixed) return rgbOf(color);
  const [one, other] = [mixed[1]!, mixed[3]!].map((part) => channels(part, theme)), share = Number(mixed[2]) / 100;
  return one!.map((value, i) => value * share + other![i]! * (1 - share));
}

function oklab(rgb: number[]): number[] {
  const [r, g, b] = rgb.map((c) => c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4) as [number, number, number];
  const l = Math.cbrt(0.4122 * r + 0.5363 * g + 0.0514 * b), m = Math.cbrt(0.2119 * r + 0.6807 * g + 0.1074 * b);
  const s = Math.cbrt(0.0883 * r + 0.2817 * g + 0.63 * b);
  return [
    0.2105 * l + 0.7936 * m - 0.0041 * s,
    1.978 * l - 2.4286 * m + 0.4506 * s,
    0.0259 * l + 0.7828 * m - 0.8087 * s,
  ];
}

const distance = (a: number[], b: number[]) => Math.hypot(...a.map((value, i) => value - b[i]!));

for (const [at, name] of ["light", "dark"].entries()) {
  for (const [set, parts] of Object.entries(SETS)) {
    Deno.test(`${set} have colors that differ from each other and from the card in ${name}`, () => {
      const named = parts.split(parts.includes(";") ? ";" : " ").map((part) => [part, timePart(part).color] as const);
      const colors = [...named, ["the card", "var(--tile)"] as const].map(([part, color]) =>
        [part, oklab(channels(color, at))] as const
      );
      const alike = colors.flatMap(([one, color], i) =>
        colors.slice(i + 1).filter(([, other]) => distance(color, other) < LEAST).map(([other]) =>
          `${one} and ${other}`
        )
      );
      is(alike.join(", "), "");
    });
  }
}

Deno.test("a cause has one color wherever it is", () => {
  const color = (part: string) => timePart(part).color;
  const same = {
    launch: "late_runtime_ns;runtime call",
    launch_latency_ns: "launch latency",
    host_operator: "late_operator_ns;operator;idle: operators and launches",
    host_python: "late_python_ns;idle: other",
    host_sync: "late_synchronizing_ns;synchronization;idle: synchronizing",
  };
  for (const [part, others] of Object.entries(same)) {
    for (const other of others.split(";")) is(color(other), color(part), other);
  }
  for (const part of ["launch_latency_ns", "graph_launch_ns"]) is(color(part).includes("var(--runtime)"), true, part);
});

Deno.test("a cause is that of a whole, mostly, or not", () => {
  is(
    [100, 96, 95, 51, 50].map((part) => mostly("copies", part, 100)).join(),
    "copies,copies,mostly copies,mostly copies,",
  );
});

Deno.test("the causes of half of a whole are named, and no more of them", () => {
  const causes = [["Launch latency", 30], ["Host in operators", 25], ["Host in Python", 25]].map(([name, value]) => ({
    id: "",
    name: String(name),
    value: Number(value),
  }));
  is(mostCauses(causes, 100), "30 % of that: launch latency; 25 %: host in operators");
  is(mostCauses(causes, 60), "50 % of that: launch latency");
  is(mostCauses([], 60), "");
});

Deno.test("time that isn't in the recording is no cause: the device may have been busy", () => {
  const hidden = { id: "not_shown_ns", name: timePart("not_shown").name, value: 60 };
  is(mostCauses([hidden], 60), "100 % of that: it may have been busy");
});

Deno.test("launch latency and graph launches are one cause of idle time, as Launches counts them", () => {
  const cause = (id: string, name: string, value: number) => ({ id, name, value });
  const causes = [
    cause("late_operator_ns", "Host in operators", 33),
    cause("launch_latency_ns", "Launch latency", 21),
    cause("graph_launch_ns", "Graph launch", 17),
  ];
  is(mostCauses(withLaunches(causes), 100), "38 % of that: launch latency and graph launches; 33 %: host in operators");
  is(withLaunches(causes.slice(0, 2)).map(({ name }) => name).join(), "Host in operators,Launch latency");
});
