import { Fragment, h } from "preact";
import type { ViewEntry } from "../api/types.ts";
import { useAnswer } from "../app/answers.ts";
import { address, openEntry, openTab, pageOf, parametersOf } from "../app/router.ts";
import { isolatedRows, type Panel } from "./curve_lines.ts";
import { label } from "../format/numbers.ts";
import { textWidth } from "../ui/measure.ts";

interface Place {
  panel: Panel;
  frame: Frame;
}

const prefixOf = ({ id }: ViewEntry) => (id === openTab.value?.id ? "" : `${id}.`);

/** Values that hold for no time, as those of a recording of one step do: points, where there is no line. */
export const Points = ({ panel, frame }: Place) => (
  <>
    {panel.lines.map(({ name, values }, line) =>
      isolatedRows(values).map((row) => (
        <circle
          key={`${name} ${row}`}
          class={`dot line${line % 4}`}
          cx={frame.x(panel.times[row]!)}
          cy={frame.y(values[row]!)}
          r="3.5"
        />
      ))
    )}
  </>
);

/** The moments of the rows that are open on the tabs: when an opened allocation began and ended. */
export function Opened(place: Place) {
  const views = openEntry.value!.tabs.flatMap(pageOf).filter((view) => address.value[`${prefixOf(view)}open`]);
  return views.map((view) => <Moments key={view.id} view={view} {...place} />);
}

function Moments({ view, panel, frame }: Place & { view: ViewEntry }) {
  const { answer } = useAnswer(view.id, parametersOf(view));
  if (answer?.state !== "ready") return null;
  const row = Number(address.value[`${prefixOf(view)}row`]);
  const isOfPanel = Object.entries(panel.of).every(([name, value]) =>
    !(name in answer.data) || answer.data[name]![row] === value
  );
  const moments = isOfPanel ? answer.columns.filter(({ kind }) => kind === "instant") : [];
  return (
    <g class="moments">
      {moments.map(({ name }) => {
        const time = answer.data[name]![row];
        if (typeof time !== "number" || time < frame.from || time > frame.to) return null;
        const [x, text] = [frame.x(time), label(name)];
        const isLeft = x + textWidth(text, 12) + 8 > frame.right;
        return (
          <g key={name}>
            <line x1={x} x2={x} y1={frame.top - 8} y2={frame.base} />
            <text x={isLeft ? x - 4 : x + 4} y={frame.top} text-anchor={isLeft ? "end" : "start"}>{text}</text>
          </g>
        );
      })}
    </g>
  );
}

/** Where times and values lie in a panel, in pixels. */
export interface Frame {
  left: number;
  right: number;
  top: number;
  base: number;
  from: number;
  to: number;
  x: (time: number) => number;
  y: (value: number) => number;
  time: (x: number) => number;
}
