/** The labels of kept marks, in the ruler: a click chooses one again, the cross removes it. */

import { type Geometry, xOf } from "./geometry.ts";
import { chosenMark, kept, remove } from "./kept.ts";
import { labelPlaces } from "./label_places.ts";
import type { Mark } from "./places.ts";
import { size } from "./scene.ts";
import { setArea, viewport } from "./state.ts";
import { duration } from "./times.ts";

const lengthOf = ({ from, to }: Mark): string => duration(to - from);

function Label({ mark, left, isShort }: { mark: Mark; left: number; isShort: boolean }) {
  const { letter } = mark;
  const isChosen = chosenMark.value?.letter === letter;
  return (
    <li class={isChosen ? "chosen" : ""} style={{ left: `${left}px` }}>
      <button
        type="button"
        aria-pressed={isChosen}
        aria-label={`Mark ${letter}, ${lengthOf(mark)}`}
        data-tip={`${lengthOf(mark)}, kept. A click chooses it`}
        onClick={() => setArea(mark)}
      >
        <b>{letter}</b>
        {!isShort && ` ${lengthOf(mark)}`}
      </button>
      <button
        type="button"
        aria-label={`Remove mark ${letter}`}
        data-tip="Remove it; Del removes the chosen one"
        onClick={() => remove(mark)}
      >
        ×
      </button>
    </li>
  );
}

export function MarkLabels() {
  const marks = kept.value;
  if (!marks.length) return null;
  const { width } = size.value, range = viewport.value;
  const place: Pick<Geometry, "width" | "range"> = { width, range };
  const edges = marks.map(({ letter, from, to }) => ({ letter, left: xOf(place, from), right: xOf(place, to) }));
  return (
    <ul class="mark-labels" aria-label="Kept marks">
      {labelPlaces(edges, width).map(({ letter, ...where }) => (
        <Label
          key={letter}
          mark={marks.find((mark) => mark.letter === letter)!}
          {...where}
        />
      ))}
    </ul>
  );
}
