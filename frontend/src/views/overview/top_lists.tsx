import { h } from "preact";
import type { Summary } from "../../api/types.ts";
import type { ShownAnswer } from "../../app/answers.ts";
import { openView } from "../../app/router.ts";
import { labelsVersion, readableName } from "../../format/kernel_labels.ts";
import { exact, percent, plural, quantity, scaled, scaleFor, sharedStart, type Value } from "../../format/numbers.ts";
import { AnswerView } from "../../ui/status.tsx";
import { LinkTo } from "../../ui/link.tsx";
import type { Unit } from "./step_unit.ts";

interface ListProps {
  top: Record<string, Value>[];
  kind: "kernel" | "operator";
  /** " per step", or empty. */
  per: string;
}

/** Names that share as many characters may be cut to the same text, so they take the lines that they need. */
const ALIKE = 24;

const LISTS = {
  kernel: { title: "Top kernels", view: "kernels", head: "Kernel · launched by" },
  operator: { title: "Top operators", view: "operators", head: "Operator · module" },
};

/** A name with what launches it below, its time, and its share as a bar. */
function List({ top, kind, per }: ListProps) {
  const rows = top.filter((row) => row.kind === kind), [first] = rows;
  if (!first) return null;
  const { title, view, head } = LISTS[kind];
  const scale = scaleFor("duration", rows.map(({ mean_ns }) => mean_ns!));
  const names = rows.map(({ name }) => readableName(String(name)));
  const isAlike = (name: string) => names.some((other) => other !== name && sharedStart(other, name) > ALIKE);
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
            <th scope="col">{hasOwner ? head : head.split(" · ")[0]}</th>
            <th scope="col">{scale.unit}{per.replace(" per ", "/")}</th>
            <th scope="col">%</th>
          </tr>
        </thead>
        <tbody>
          {rows.map((row, i) => {
            const { owner, mean_ns } = row, name = String(row.name), shown = names[i]!;
            const share = row.share_frac as number;
            const others = Number(row.other_owners ?? 0);
            return (
              <tr key={name}>
                <th scope="row">
                  <button
                    type="button"
                    class={isAlike(shown) ? "plain whole" : "plain"}
                    data-tip={name}
                    onClick={() => openView(view, shown)}
                  >
                    {shown}
                  </button>
                  <small>
                    {owner && `${owner}${others ? ` +${others}` : ""} · `}
                    {plural(row.calls as number, "call")}
                    {per && " in all"}
                  </small>
                </th>
                <td data-tip={exact(mean_ns, "duration")}>{scaled(mean_ns as number, scale)}</td>
                <td style={{ "--share": share }}>{percent(share)}</td>
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
  const per = unit.counted && ` per ${unit.noun}`;
  return (
    <AnswerView shown={shown} title="Top kernels and operators">
      {({ rows: { top = [] } }) => (
        <div class="tops">
          <List top={top} kind="kernel" per={per} />
          <List top={top} kind="operator" per={per} />
        </div>
      )}
    </AnswerView>
  );
}
