import { h } from "preact";
import { useAnswer } from "../../app/answers.ts";
import { openView } from "../../app/router.ts";
import { exact, percent, plural, scaled, scaleFor, type Value } from "../../format/numbers.ts";
import { LinkTo } from "../../ui/link.tsx";
import { AnswerView } from "../../ui/status.tsx";

const MOST = 12;

/** How long the busiest threads and streams worked: what can be said of any file. */
export function BusyLanes() {
  const shown = useAnswer("lanes");
  return (
    <AnswerView shown={shown} title="Busy time by lane">
      {({ data }) => {
        const rows = data.busy_ns!.map((_, row) => row).slice(0, MOST);
        const scale = scaleFor("duration", rows.map((row) => data.busy_ns![row]!));
        const text = (value: Value | undefined) => String(value ?? "");
        return (
          <section class="card top lanes" aria-label="Busy time by lane">
            <header>
              <h2>Busy time by lane</h2>
              <span>{plural(data.busy_ns!.length, "lane")}</span>
              <LinkTo open={() => openView("lanes", "")}>all</LinkTo>
            </header>
            <table>
              <thead>
                <tr>
                  <th scope="col">Process · lane</th>
                  <th scope="col">{scale.unit}</th>
                  <th scope="col">%</th>
                </tr>
              </thead>
              <tbody>
                {rows.map((row) => (
                  <tr key={row}>
                    <th scope="row">
                      <span class="whole">{text(data.process![row])} · {text(data.lane![row])}</span>
                      <small>{plural(data.events![row] as number, "event")} · {text(data.largest_name![row])}</small>
                    </th>
                    <td data-tip={exact(data.busy_ns![row], "duration")}>
                      {scaled(data.busy_ns![row] as number, scale)}
                    </td>
                    <td style={{ "--share": data.busy_frac![row] as number }}>
                      {percent(data.busy_frac![row] as number)}
                    </td>
                  </tr>
                ))}
              </tbody>
            </table>
          </section>
        );
      }}
    </AnswerView>
  );
}
