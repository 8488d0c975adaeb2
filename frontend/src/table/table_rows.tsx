import { Component, h } from "preact";
import { type DrawnColumn, isProse, isText, sentencesOf, sortedTexts } from "./columns.ts";
import { align, cell, exact } from "../format/numbers.ts";
import { ROW } from "./row_layout.ts";
import { cutName } from "../ui/measure.ts";
import { prose } from "../ui/prose.tsx";
import { indent, INSET, SWATCH } from "./table_layout.ts";

/** The button that folds and unfolds a row; invisible if the row has no children. */
const Fold = ({ level, isUnfolded, name }: { level: number; isUnfolded: boolean | null; name: string }) => (
  <button
    type="button"
    class="turn"
    tabIndex={-1}
    disabled={isUnfolded === null}
    style={{ marginLeft: `${indent(level) - 18}px` }}
    aria-label={`${isUnfolded ? "Fold" : "Unfold"} ${name}`}
  >
    {isUnfolded ? "▾" : "▸"}
  </button>
);

function textOf({ shown, values, kind, scale, isNumeric }: DrawnColumn, row: number): string {
  const text = shown?.(row) ?? cell(values[row], kind, scale);
  return isNumeric ? align(text, scale) : text;
}

/** A cell's tooltip: the exact number, or the text that was cut. */
export function cellTip(column: DrawnColumn, row: number, shown: string): string | null {
  const { kind, values, scale, isNumeric } = column;
  if (isNumeric) return exact(values[row], kind);
  if (isProse(column)) return null;
  const text = cell(values[row], kind, scale);
  return text === shown ? null : text;
}

function classOf(column: DrawnColumn, row: number): string {
  const kinds = [
    column.isNumeric && "number",
    isProse(column) && "prose",
    column.values[row] === null && "missing",
    column.bar && "share",
  ];
  return [...kinds, column.tone?.(row)].filter(Boolean).join(" ");
}

const BAR = 48, AFTER_BAR = 10; // pixels of a full bar, and of what is at its right

/** Where a bar lies in its cell, in pixels: it begins where a full one does. */
function barStyle({ bar, values }: DrawnColumn, row: number) {
  const value = values[row], width = bar && typeof value === "number" ? BAR * value / bar.of : 0;
  if (width <= 0) return undefined;
  const right = AFTER_BAR + BAR - width;
  return `background-position-x: calc(100% - ${right.toFixed(1)}px); background-size: ${width.toFixed(1)}px 8px`;
}

export interface RowProps {
  columns: DrawnColumn[];
  columnWidths: number[];
  row: number;
  place: number;
  top: number;
  height: number;
  isChosen: boolean;
  /** Whether its element may show another row, out of sight as well, until the table rests. */
  isWaiting: boolean;
  /** Whether what belongs to it is shown below it, or in it if it is of a tree. */
  isExpanded: boolean;
  /** Where it is of a tree. */
  level: number | null;
  isUnfolded: boolean | null;
}

/**
 * One row. While the table scrolls, the element of a row that scrolled out is reused for one that scrolled in; a row
 * whose properties are unchanged is not rendered again.
 */
export class Row extends Component<RowProps> {
  override shouldComponentUpdate(next: RowProps): boolean {
    return !next.isWaiting && (Object.keys(next) as (keyof RowProps)[]).some((name) => next[name] !== this.props[name]);
  }

  cell(column: DrawnColumn, at: number) {
    const { row, columnWidths, level, isUnfolded } = this.props;
    const text = textOf(column, row);
    const isFolding = at === 0 && level !== null;
    const room = columnWidths[at]! - INSET - (isFolding ? indent(level) : 0) - (column.swatch ? SWATCH : 0);
    return (
      <td
        key={column.name}
        role="gridcell"
        class={classOf(column, row)}
        style={barStyle(column, row)}
      >
        {isFolding && <Fold level={level} isUnfolded={isUnfolded} name={text} />}
        {column.swatch && <i class="swatch" style={{ background: column.swatch(row) }} />}
        {isProse(column)
          ? sentencesOf(column, row).map((sentence, i) => <div key={i}>{prose(sentence)}</div>)
          : isText(column)
          ? cutName(text, room, () => sortedTexts(column))
          : text}
      </td>
    );
  }

  render({ columns, row, place, top, height, isChosen, isExpanded, level }: RowProps) {
    return (
      <tr
        id={`row-${row}`}
        class="row"
        role="row"
        style={{ transform: `translateY(${top}px)`, height: height === ROW ? undefined : `${height}px` }}
        aria-level={(level ?? 0) + 1}
        aria-rowindex={place + 2}
        aria-selected={isChosen}
        aria-expanded={isExpanded}
        data-place={place}
      >
        {columns.map((column, at) => this.cell(column, at))}
      </tr>
    );
  }
}
