import { h } from "preact";
import { useRef } from "preact/hooks";
import { cutApart } from "../format/numbers.ts";
import { fitText, useWidth } from "../ui/measure.ts";

/** A menu on one line, with its title inside; a long name is cut so that it differs from the others. */
export function Selector(
  { title, value, options, onPick }: {
    title: string;
    value: string;
    options: [name: string, label: string][];
    onPick: (name: string) => void;
  },
) {
  const box = useRef<HTMLSpanElement>(null);
  const room = useWidth(box);
  const chosen = options.find(([name]) => name === value)?.[1];
  const label = chosen ?? (value && `${value} (not found)`);
  return (
    <div class="selector">
      <label for={title}>{title.replace("Base ", "")}</label>
      <span ref={box} aria-hidden="true">
        {cutApart(label, options.map(([, other]) => other), (text) => fitText(text, room))}
      </span>
      <select
        id={title}
        aria-label={title}
        value={value}
        data-tip={label}
        onChange={(event) => onPick(event.currentTarget.value)}
      >
        {value && chosen === undefined && <option key={value} value={value}>{label}</option>}
        {options.map(([name, label]) => <option key={name} value={name}>{label}</option>)}
      </select>
    </div>
  );
}
