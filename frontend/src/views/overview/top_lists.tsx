import { h } from "preact";
import type { Table } from "../../api/types.ts";
import { useAnswer } from "../../app/answers.ts";
import { openView } from "../../app/router.ts";
import { labelsVersion, readableName } from "../../format/kernel_labels.ts";
import { exact, percent, plural, quantity, scaled, scaleFor, sharedStart } from "../../format/numbers.ts";
import { AnswerView } from "../../ui/status.tsx";
import { LinkTo } from "../../ui/link.tsx";
import type { Unit } from "./step_unit.ts";

interface ListProps {
  data: Table["data"];
  kind: "kernel" | "operator";
  rows: number;
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
function List({ data, kind, rows: most, per }: ListProps) {
  const rows = data.kind!.map((_, i) => i).filter((i) => data.kind![i] === kind).slice(0, most);
  if (!rows.length) return null;
  const { title, view, head } = LISTS[kind];
  const scale = scaleFor("duration", rows.map((row) => data.mean_ns![row]!));
  const names = rows.map((row) => readableName(String(data.name![row])));
  const isAlike = (name: string) => names.some((other) => other !== name && sharedStart(other, name) > ALIKE);
  const hasOwner = rows.some((row) => data.owner![row] !== null);
  return (
    <section class="card top" aria-label={title}>
      <header>
        <h2>{title}</h2>
        <span>of {quantity(data.whole_ns![rows[0]!] as number, "duration")} {data.measure![rows[0]!]}{per}</span>
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
            const name = String(data.name![row]), shown = names[i]!, share = data.share_frac![row] as number;
            const others = Number(data.other_owners![row] ?? 0), owner = data.owner![row];
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
                    {plural(data.calls![row] as number, "call")}
                    {per && " in all"}
                  </small>
                </th>
                <td data-tip={exact(data.mean_ns![row], "duration")}>{scaled(data.mean_ns![row] as number, scale)}</td>
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
export function TopLists({ unit, rows }: { unit: Unit; rows: number }) {
  const shown = useAnswer("top");
  void labelsVersion.value; // draws again when the labels of kernels arrive
  if (shown.answer?.state === "missing") return null;
  const per = unit.counted && ` per ${unit.noun}`;
  return (
    <AnswerView shown={shown} title="Top kernels and operators">
      {({ data }) => (
        <div class="tops">
          <List data={data} kind="kernel" rows={rows} per={per} />
          <List data={data} kind="operator" rows={rows} per={per} />
        </div>
      )}
    </AnswerView>
  );
}
