import { h } from "preact";
import type { Summary } from "../../api/types.ts";
import type { ShownAnswer } from "../../app/answers.ts";
import { openView } from "../../app/router.ts";
import { labelsVersion, readableName } from "../../format/readable_names.ts";
import {
  align,
  decimal,
  exact,
  PERCENT,
  percent,
  quantity,
  scaled,
  scaleFor,
  type Value,
} from "../../format/numbers.ts";
import { AnswerView } from "../../ui/status.tsx";
import { LinkTo } from "../../ui/link.tsx";
import type { Unit } from "./step_unit.ts";

interface ListProps {
  top: Record<string, Value>[];
  kind: "kernel" | "operator";
  /** " per step", or of a single one " in step 6"; empty without steps. */
  per: string;
  /** How many steps averages are over; 0 without any. */
  steps: number;
}

/** How often: a kernel runs `32× by` what launches it, which may be one call. */
const often = (count: number, isKernel: boolean) =>
  decimal(count, count % 1 && 1) + (isKernel ? "×" : count === 1 ? " call" : " calls");

const LISTS = {
  kernel: { title: "Top kernels", view: "kernels", head: "Kernel · launched by" },
  operator: { title: "Top operators", view: "operators", head: "Operator · module" },
};

/** A name with what launches it below, its time, and its share as a bar. */
function List({ top, kind, per, steps }: ListProps) {
  const rows = top.filter((row) => row.kind === kind), [first] = rows;
  if (!first) return null;
  const { title, view, head } = LISTS[kind], isKernel = kind === "kernel";
  const scale = scaleFor("duration", rows.map(({ mean_ns }) => mean_ns!));
  const names = rows.map(({ name }) => readableName(String(name)));
  const ofStep = per.startsWith(" per ") ? per.replace(" per ", "/") : "";
  const hasOwner = rows.some(({ owner }) => owner !== null);
  return (
    <section class="card top" aria-label={title}>
      <header>
        <h2>{title}</h2>
        <span>of {quantity(first.whole_ns as number, "duration")} {first.measure}{per}</span>
        <LinkTo open={() => openView(view, "")}>all</LinkTo>
      </header>
      <table>
        <thead>
          <tr>
            <th scope="col">
              {hasOwner ? head : head.split(" · ")[0]}
              {ofStep && ` · ${isKernel ? "times" : "calls"}${ofStep}`}
            </th>
            <th scope="col">{scale.unit}{ofStep}</th>
            <th scope="col">%</th>
          </tr>
        </thead>
        <tbody>
          {rows.map((row, i) => {
            const { owner, mean_ns } = row, name = String(row.name), shown = names[i]!;
            const share = row.share_frac as number;
            const others = Number(row.other_owners ?? 0), by = owner && `${owner}${others ? ` +${others}` : ""}`;
            const calls = row.calls === null
              ? "launched by no recorded operator"
              : often(Number(row.calls) / (steps || 1), isKernel);
            return (
              <tr key={name}>
                <th scope="row">
                  <button
                    type="button"
                    class="plain"
                    data-tip={name}
                    onClick={() => openView(view, shown)}
                  >
                    {shown}
                  </button>
                  <small>
                    {(isKernel ? [calls, by] : [by, calls]).filter(Boolean).join(isKernel ? " by " : " · ")}
                  </small>
                </th>
                <td data-tip={exact(mean_ns, "duration")}>{align(scaled(mean_ns as number, scale), scale)}</td>
                <td style={{ "--share": share, ...(row.is_communication && { "--kernel": "var(--communication)" }) }}>
                  {align(percent(share), PERCENT)}
                </td>
              </tr>
            );
          })}
        </tbody>
      </table>
    </section>
  );
}

/** The kernels and the operators that take most time. */
export function TopLists({ shown, unit }: { shown: ShownAnswer<Summary>; unit: Unit }) {
  void labelsVersion.value; // draws again when the labels of kernels arrive
  const per = unit.counted ? ` per ${unit.noun}` : unit.isWhole ? "" : ` in ${unit.words}`;
  return (
    <AnswerView shown={shown} title="Top kernels and operators">
      {({ steps, rows: { top = [] } }) => (
        <div class="tops">
          <List top={top} kind="kernel" per={per} steps={steps} />
          <List top={top} kind="operator" per={per} steps={steps} />
        </div>
      )}
    </AnswerView>
  );
}
