import { h } from "preact";
import { useRef } from "preact/hooks";
import type { PictureOf } from "../api/types.ts";
import { decimal, exact, percent, quantity } from "../format/numbers.ts";
import { readableName } from "../format/readable_names.ts";
import type { DrawnColumn } from "../table/columns.ts";
import type { DrawnTable } from "../table/rows.ts";
import { SavePicture } from "../table/save.tsx";
import { cutText, textWidth, useWidth } from "../ui/measure.ts";
import { useMarks } from "./marks.ts";
import { Legend } from "./stacked_bar.tsx";
import { squarify } from "./treemap_layout.ts";

const HEIGHT = 300;
const MOST = 500; // boxes of a group; the smaller ones are drawn as one

type Drawn = DrawnTable & { picture: PictureOf<"treemap"> };

/** Rows as rectangles, in groups; the table below has the same rows. */
export function Treemap(drawn: Drawn) {
  const area = drawn.ready.columns.find(({ name }) => name === drawn.picture.area);
  return area ? <Chart {...drawn} area={area} /> : null;
}

function Chart({ picture, ready, table, rows: { rows }, area }: Drawn & { area: DrawnColumn }) {
  const box = useRef<HTMLDivElement>(null);
  const width = useWidth(box);
  const sizeOf = (row: number) => Number(area.values[row] ?? 0);
  const names = table.data[picture.group] ?? [];
  const groups = Map.groupBy(Array.from(rows).filter((row) => sizeOf(row) > 0), (row) => String(names[row]));
  const sum = (of: number[]) => of.reduce((total, row) => total + sizeOf(row), 0);
  const ordered = [...groups].map(([name, of]) => ({
    name,
    size: sum(of),
    of: of.sort((a, b) => sizeOf(b) - sizeOf(a)),
  }))
    .sort((a, b) => b.size - a.size);
  const whole = ordered.reduce((total, { size }) => total + size, 0);
  const sized = (size: number) => `${exact(size, area.kind)} · ${percent(size / whole)} %`;
  const inkOf = (group: string) => `line${picture.groups.indexOf(group)}`;
  const nameOf = (row: number) => readableName(String(table.data[picture.name]?.[row] ?? ""));
  const tip = (row: number) => `${ready.nameOf(row)}\n${sized(sizeOf(row))}`;
  const marks = useMarks(ordered.flatMap(({ of }) => of), `Treemap of ${area.title}`, tip);
  const places = width > 0 ? squarify(ordered.map(({ size }) => size), { left: 0, top: 0, width, height: HEIGHT }) : [];
  return (
    <figure class="card plot treemap">
      <figcaption>
        {area.title} <span>{quantity(whole, area.kind)} in all</span>
        <SavePicture title={area.title} />
      </figcaption>
      <Legend
        parts={ordered.map(({ name, size }) => ({
          name: `${name} ${quantity(size, area.kind)} (${percent(size / whole)} %)`,
          look: inkOf(name),
        }))}
      />
      <div ref={box} {...marks.around}>
        <svg
          width={width}
          height={HEIGHT}
          aria-hidden="true"
        >
          {places.map((place, i) => {
            const { name, of } = ordered[i]!;
            const smaller = of.slice(MOST), sizes = of.slice(0, MOST).map(sizeOf);
            if (smaller.length) sizes.push(sum(smaller));
            return (
              <g key={name} class={inkOf(name)}>
                {squarify(sizes, place).map((place, at) => {
                  const row = of[at]!, size = sizes[at]!;
                  const rest = at === MOST && `${decimal(smaller.length)} smaller`;
                  const text = rest || cutText(nameOf(row), place.width - 8, 12);
                  const fits = place.height > 16 && textWidth(text, 12) < place.width - 6;
                  return (
                    <g
                      key={row}
                      class={rest || row !== marks.row ? "" : "marked"}
                      data-tip={rest ? `${rest}\n${sized(size)}` : tip(row)}
                      onClick={() => rest || marks.open(row)}
                    >
                      <rect x={place.left} y={place.top} width={place.width} height={place.height} />
                      {fits && <text x={place.left + 4} y={place.top + 14}>{text}</text>}
                    </g>
                  );
                })}
              </g>
            );
          })}
        </svg>
      </div>
    </figure>
  );
}
