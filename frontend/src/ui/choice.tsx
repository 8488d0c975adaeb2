import { h } from "preact";
/** A menu of names with its title above. */
export function Choice(
  { title, value, options, onPick }: {
    title: string;
    value: string;
    options: [name: string, label: string][];
    onPick: (name: string) => void;
  },
) {
  const isGone = value && !options.some(([name]) => name === value);
  return (
    <div class="choice">
      <label for={title}>{title}</label>
      <select id={title} value={value} data-tip={value} onChange={(event) => onPick(event.currentTarget.value)}>
        {isGone && <option key={value} value={value}>{value} (not found)</option>}
        {options.map(([name, label]) => <option key={name} value={name}>{label}</option>)}
      </select>
    </div>
  );
}
