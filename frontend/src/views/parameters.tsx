/** Controls for the parameters of views: a view's own ones next to its table, shared ones at the top of the page. */

import { h } from "preact";
import type { Parameter, ViewEntry } from "../api/types.ts";
import { tableOf, useAnswer } from "../app/answers.ts";
import { address, catalogue, choose, parametersOf, zoom, zoomTo } from "../app/router.ts";
import { decimal, label, quantity } from "../format/numbers.ts";
import { Menu, Stops } from "../ui/choice.tsx";
import { ShowInTimeline } from "../ui/timeline_link.tsx";

const TIMES = ["from_ns", "to_ns"];
const OF_A_PAGE = [...TIMES, "device"];

const valueOf = (name: string) => address.value[`set.${name}`] ?? "";

function Select({ parameter: { name, choices }, names }: { parameter: Parameter; names?: Map<string, string> }) {
  return (
    <Menu
      title={label(name)}
      value={valueOf(name) || choices[0]!}
      options={choices.map((choice) => [
        choice,
        names?.get(choice) ?? choice.replace(/\d{4,}/, (digits) => decimal(Number(digits))),
      ])}
      onPick={(value) => choose({ [name]: value === choices[0] ? "" : value })}
    />
  );
}

const isNumber = (text: string) => /^\d+$/.test(text);

const PERCENT = "percent"; // by which work would take less time

/** A choice among numbers, of which the first one is the usual one. */
function NumberChoice({ parameter: { name, choices } }: { parameter: Parameter }) {
  const [usual] = choices, value = valueOf(name) || usual!, isPercent = name === PERCENT;
  const title = isPercent ? "Saved with" : label(name);
  return (
    <label>
      {title}{" "}
      <Stops
        label={title}
        value={value}
        stops={choices.toSorted((a, b) => Number(a) - Number(b))}
        onPick={(picked) => choose({ [name]: picked === usual ? "" : picked })}
      />{" "}
      <b>{value}{isPercent && " % less time"}</b>
    </label>
  );
}

/** A number or a text, taken when the field is left or Enter is pressed. */
function Field({ parameter: { name, kind }, empty }: { parameter: Parameter; empty?: string }) {
  return (
    <label>
      {label(name)}{" "}
      <input
        type="search"
        inputMode={kind === "number" ? "numeric" : "text"}
        value={valueOf(name)}
        placeholder={empty}
        onChange={({ currentTarget: { value } }) => choose({ [name]: value })}
      />
    </label>
  );
}

const ALL = "";
const MOST = 100; // choices in a menu

/** What a view's column of the same name has, such as the devices. */
function ColumnChoice({ parameter, entry }: { parameter: Parameter; entry: ViewEntry }) {
  const { name } = parameter;
  const { [name]: _, ...others } = parametersOf(entry);
  const table = tableOf(useAnswer(entry.id, others));
  const values = new Set((table?.data[name] ?? []).filter((value) => value !== null).map(String));
  const chosen = valueOf(name);
  const isGone = chosen && !values.has(chosen);
  if (values.size > MOST) return <Field parameter={parameter} empty="all" />;
  if (values.size < 2 && !isGone) return null;
  const choices = parameter.kind === "number" ? [...values].sort((a, b) => Number(a) - Number(b)) : [...values];
  const names = new Map([[ALL, "all"], ...(isGone ? [[chosen, `${chosen} (not in this trace)`] as const] : [])]);
  return <Select parameter={{ ...parameter, choices: [ALL, ...choices, ...(isGone ? [chosen] : [])] }} names={names} />;
}

/** One parameter; `views` are those in whose rows its values may be found. */
function Choice({ parameter, views }: { parameter: Parameter; views: ViewEntry[] }) {
  if (parameter.kind === "choice") {
    return parameter.choices.every(isNumber)
      ? <NumberChoice parameter={parameter} />
      : <Select parameter={parameter} />;
  }
  const isListed = ({ columns }: ViewEntry) =>
    columns.some(({ name, kind }) => name === parameter.name && (kind === "id" || kind === "text"));
  const listed = views.find(isListed);
  return listed ? <ColumnChoice parameter={parameter} entry={listed} /> : <Field parameter={parameter} />;
}

/** A view's own parameters; `fixed` ones are set elsewhere. Another tab that has one lists its values, too. */
export function Parameters({ entry, fixed }: { entry: ViewEntry; fixed: string[] }) {
  const own = entry.parameters.filter(({ name }) => !OF_A_PAGE.includes(name) && !fixed.includes(name));
  const tabsWith = (name: string) =>
    catalogue.value.filter((other) =>
      other.entry.title === entry.entry.title && other.parameters.some((parameter) => parameter.name === name)
    );
  return own.map((parameter) => (
    <Choice key={parameter.name} parameter={parameter} views={[entry, ...tabsWith(parameter.name)]} />
  ));
}

function Zoom() {
  if (!zoom.value) return null;
  const { from, to } = zoom.value;
  return (
    <span class="zoom" role="status">
      Only {quantity(from, "instant")} to {quantity(to, "instant")}{" "}
      <button type="button" onClick={() => zoomTo(null)}>Whole recording</button>{" "}
      <ShowInTimeline slices={{ find: null, range: zoom.value }} />
    </span>
  );
}

/** The phases of a server's iterations. */
function usePhases(): string[] {
  const { answer } = useAnswer("steps");
  return answer?.state === "ready" ? [...new Set((answer.data.phase ?? []).filter(Boolean) as string[])] : [];
}

/** What all views of a page share: the time, the device and the phase that they are narrowed to. */
export function PageParameters({ views }: { views: ViewEntry[] }) {
  const shared = views.flatMap(({ parameters }) => parameters).filter(({ name }) => OF_A_PAGE.includes(name));
  const device = shared.find(({ name }) => name === "device");
  const hasTimes = shared.some(({ name }) => TIMES.includes(name)) && zoom.value;
  const phases = usePhases();
  const hasPhase = phases.length > 0 && views.some(({ takes_steps }) => takes_steps);
  if (!device && !hasTimes && !hasPhase) return null;
  return (
    <div class="tools page">
      {device && <Choice parameter={device} views={views} />}
      {hasPhase && (
        <Select
          parameter={{ name: "phase", kind: "choice", choices: [ALL, ...phases] }}
          names={new Map([[ALL, "all"]])}
        />
      )}
      {hasTimes && <Zoom />}
    </div>
  );
}
