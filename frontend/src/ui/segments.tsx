import { h } from "preact";
/** Buttons side by side of which one is pressed. */
export function Segments<T extends string>(
  { label, options, value, pick }: {
    label: string;
    options: readonly (readonly [value: T, title: string, tip?: string])[];
    value: T;
    pick: (value: T) => void;
  },
) {
  return (
    <div class="segments" role="group" aria-label={label}>
      <div>
        {options.map(([id, title, tip]) => (
          <button
            key={id}
            type="button"
            aria-pressed={id === value}
            data-tip={tip}
            onClick={() => pick(id)}
          >
            {title}
          </button>
        ))}
      </div>
    </div>
  );
}
