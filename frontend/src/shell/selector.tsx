import { h } from "preact";
import { useRef } from "preact/hooks";
import { cutApart } from "../format/numbers.ts";
import { folderAndName } from "../format/run_filter.ts";
import { fitText, useWidth } from "../ui/measure.ts";

const LINES = 0.85 * 4; // that a name may have; breaks leave some of each empty

/** A menu with its title inside; a name wraps, and a very long one is cut so that it differs from the others. */
export function Selector(
  { title, value, options, isByFolder, onPick }: {
    title: string;
    value: string;
    options: [name: string, label: string][];
    /** Whether options are grouped by the folders in their labels. */
    isByFolder?: boolean;
    onPick: (name: string) => void;
  },
) {
  const box = useRef<HTMLSpanElement>(null);
  const room = LINES * useWidth(box);
  const chosen = options.find(([name]) => name === value)?.[1];
  const label = chosen ?? (value && `${value} (not found)`);
  const folders = Map.groupBy(options, ([, label]) => isByFolder ? folderAndName(label)[0] : "");
  return (
    <div class="selector">
      <label for={title}>{title.replace("Base ", "")}</label>
      <span ref={box} aria-hidden="true">
        {withBreaks(cutApart(label, options.map(([, other]) => other), (text) => fitText(text, room)))}
      </span>
      <select
        id={title}
        aria-label={title}
        value={value}
        data-tip={label}
        onChange={(event) => onPick(event.currentTarget.value)}
      >
        {value && chosen === undefined && <option key={value} value={value}>{label}</option>}
        {[...folders].map(([folder, own]) => {
          const shown = own.map(([name, label]) => <option key={name} value={name}>{label}</option>);
          return folder ? <optgroup key={folder} label={folder}>{shown}</optgroup> : shown;
        })}
      </select>
    </div>
  );
}

/** A name that breaks behind its separators first. */
function withBreaks(name: string) {
  return name.split(/(?<=[-_./])/).map((part, number) => [number > 0 && <wbr key={number} />, part]);
}
