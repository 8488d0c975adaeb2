/** The steps in order of time: whether one takes longer, and a column of its parts for each. */

import { h } from "preact";
import { unbroken } from "../format/numbers.ts";
import type { DrawnTable } from "../table/rows.ts";
import { SavePicture } from "../table/save.tsx";
import { Legend } from "./stacked_bar.tsx";
import { CATEGORIES } from "./step_categories.ts";
import { StepsChart } from "./steps_chart.tsx";
import { stepsInWords } from "./usual_step.ts";

export function StepColumns({ table: { data }, entry: { title } }: DrawnTable) {
  const answer = stepsInWords(data);
  return data.step!.length < 2 ? null : (
    <figure class="card heat">
      {answer && <p class="answer">{unbroken(answer)}</p>}
      <StepsChart data={data} />
      <figcaption>
        <Legend parts={CATEGORIES.filter(({ column }) => data[column]?.some(Boolean))} />
        <SavePicture title={title} />
      </figcaption>
    </figure>
  );
}
