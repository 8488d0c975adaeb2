/** What the calls behind a row have in common: what launched them, with which shapes, how long they take, and when. */

import { type ComponentChildren, Fragment, h } from "preact";
import type { Find } from "../api/row_slices.ts";
import type { Failed, Loading } from "../api/types.ts";
import type { CallShare, RankFacts, RowAdvice, RowFacts } from "../api/timeline_types.ts";
import { useResource } from "../app/resource.ts";
import { go, openTimeline, openView, stepWord, trace } from "../app/router.ts";
import { decimal, plural, quantity } from "../format/numbers.ts";
import { functionName } from "../format/readable_names.ts";
import { shortFrame } from "../format/stacks.ts";
import { Part } from "../ui/details.tsx";
import { Durations, SmallBars } from "../ui/durations.tsx";
import { prose } from "../ui/prose.tsx";
import { LinkTo } from "../ui/link.tsx";
import { Stack } from "../ui/stack.tsx";
import { ProgressLine } from "../ui/status.tsx";

const TITLES = {
  operator: "Operator",
  module: "Module",
  line: "Python",
  input: "Input",
  launch: "Grid × block",
  rank: "",
};
const OF_HOST = new Set(["Operator", "Runtime"]);

/** The text, with the stack to unfold, or as a link to its rows, or to its slices on another rank. */
function ShareText({ kind, text: name, stack, instances, row, worker, find }: CallShare) {
  const text = kind === "line" ? functionName(name) : name;
  if (stack) {
    return (
      <details>
        <summary data-tip={text}>{shortFrame(name)}</summary>
        <Stack text={stack} />
      </details>
    );
  }
  const open = find ? () => openTimeline({ find, range: null, worker }) : row && (() => openView(row.view, row.filter));
  return (
    <>
      {open ? <button type="button" class="link" onClick={open}>{text}</button> : text}
      {instances !== null && instances > 1 && ` · ${plural(instances, "instance")}`}
    </>
  );
}

const Shares = ({ rows, textOf }: { rows: CallShare[]; textOf: (row: CallShare) => ComponentChildren }) => (
  <dl class="named origins">
    {rows.map((row, i) => (
      <div key={`${row.kind} ${row.text}`}>
        <dt>{row.kind !== rows[i - 1]?.kind && TITLES[row.kind]}</dt>
        <dd style={{ "--share": row.total_ns / rows[0]!.total_ns }}>
          <ShareText {...row} />
        </dd>
        <dd class="quiet">{textOf(row)}</dd>
      </div>
    ))}
  </dl>
);

function Steps({ steps }: { steps: RowFacts["steps"] }) {
  const tipOf = (i: number) => {
    const { name, calls, total_ns } = steps[i]!;
    return `${stepWord.value} ${name}: ${quantity(total_ns, "duration")} in ${plural(calls, "call")}`;
  };
  return (
    <Part title={`By ${stepWord.value}`}>
      <SmallBars
        heights={steps.map(({ total_ns }) => total_ns)}
        tipOf={tipOf}
        ends={[`${stepWord.value} ${steps[0]!.name}`, steps.at(-1)!.name]}
        label={`Time by ${stepWord.value}`}
      />
    </Part>
  );
}

const Roof = ({ roof: { roof_frac, bound_by, time_frac } }: { roof: NonNullable<RowFacts["roof"]> }) => (
  <Part title="Roofline">
    <p>
      <b>{Math.round(100 * roof_frac)} %</b> of what the device can reach; {bound_by}-bound
      {time_frac < 0.99 && <span class="quiet">{` · known for ${Math.round(100 * time_frac)} % of the GPU time`}</span>}
    </p>
  </Part>
);

function Calls({ durations, slowest, origins, inputs, steps, roof }: RowFacts) {
  if (!durations || !slowest) return null;
  const { count, total_ns } = durations;
  const { slice, start_ns, dur_ns, category } = slowest;
  const showSlowest = () => {
    openTimeline({ find: null, range: { from: start_ns, to: start_ns + dur_ns } });
    go({ slice: String(slice) });
  };
  return (
    <>
      {origins.length > 0 && (
        <Part title={OF_HOST.has(category) ? "Called from" : "Launched by"}>
          <Shares rows={origins} textOf={(row) => `${Math.round(100 * row.total_ns / total_ns)} %`} />
        </Part>
      )}
      {inputs.length > 0 && (
        <Part title="Shapes and launch">
          <Shares rows={inputs} textOf={({ calls }) => plural(calls, "call")} />
        </Part>
      )}
      <Part title={count > 1 ? `Its ${decimal(count)} calls by duration` : "Its call"}>
        {count > 1 && <Durations stats={durations} />}
        <LinkTo open={showSlowest}>{count > 1 ? "Slowest call" : "The call"} in the timeline</LinkTo>
      </Part>
      {steps.length > 0 && <Steps steps={steps} />}
      {roof && <Roof roof={roof} />}
    </>
  );
}

/** A part of the answer about a row. */
function useRow<T extends { state: "ready" }>(part: string, find: Find): T | Loading | Failed | null {
  const { version, ...place } = trace.value;
  const query = { ...place, stamp: version, find: JSON.stringify(find) };
  return useResource<T | Loading | Failed>({ route: `timeline/row${part}`, query });
}

/** The facts about the calls that a row of a view stands for. */
export function RowCalls({ find }: { find: Find }) {
  const answer = useRow<RowFacts>("", find);
  if (answer?.state === "ready") return <Calls {...answer} />;
  if (answer?.state === "failed") return <p class="quiet">{answer.message}</p>;
  return <ProgressLine progress={answer?.progress ?? null} />;
}

/** The advice that the row belongs to, and the same row on each rank. */
export function RowContext({ find }: { find: Find }) {
  const advice = useRow<RowAdvice>("/advice", find), ranks = useRow<RankFacts>("/ranks", find);
  return (
    <>
      {advice?.state === "ready" && advice.advice.length > 0 && (
        <Part title="Part of a finding">
          {advice.advice.map(({ rule, title }) => (
            <button
              key={rule}
              type="button"
              class="link"
              onClick={() => openView("advice", rule)}
            >
              {prose(title)}
            </button>
          ))}
        </Part>
      )}
      {ranks?.state === "loading" && <ProgressLine progress={ranks.progress} />}
      {ranks?.state === "ready" && ranks.text && (
        <Part title="By rank">
          <p>{ranks.text}</p>
          <Shares
            rows={ranks.ranks}
            textOf={({ calls, total_ns }) =>
              `${quantity(total_ns, "duration")} · ${plural(calls, "call")} of ${
                quantity(total_ns / calls, "duration")
              }`}
          />
        </Part>
      )}
    </>
  );
}
