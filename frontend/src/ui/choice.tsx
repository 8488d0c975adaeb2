/** Fields with their titles. */

import { type ComponentChildren, h } from "preact";

interface MenuProps {
  title: string;
  /** For screen readers, where the title is but a word. */
  label?: string;
  class?: string;
  tip?: string;
  value: string;
  options: readonly (readonly [value: string, text: string, tip?: string])[];
  onPick: (value: string) => void;
}

/** A menu behind its title. */
export const Menu = ({ title, label, class: name, tip, value, options, onPick }: MenuProps) => (
  <label class={name} data-tip={tip}>
    {title}{" "}
    <select
      aria-label={label}
      value={value}
      onChange={({ currentTarget: { value } }) =>
        onPick(value)}
    >
      {options.map(([value, text, tip]) => <option key={value} value={value} title={tip}>{text}</option>)}
    </select>
  </label>
);

interface CheckProps {
  isOn: boolean;
  set: (isOn: boolean) => void;
  tip?: string;
  disabled?: boolean;
  children: ComponentChildren;
}

/** A box to check, before its title. */
export const Check = ({ isOn, set, tip, disabled, children }: CheckProps) => (
  <label data-tip={tip}>
    <input
      type="checkbox"
      checked={isOn}
      disabled={disabled}
      onChange={({ currentTarget: { checked } }) => set(checked)}
    />{" "}
    {children}
  </label>
);

interface StopsProps {
  label: string;
  value: string;
  /** In order. */
  stops: readonly string[];
  onPick: (value: string) => void;
}

/** A slider that stands at one of a few values. */
export const Stops = ({ label, value, stops, onPick }: StopsProps) => (
  <input
    type="range"
    aria-label={label}
    min={0}
    max={stops.length - 1}
    value={stops.indexOf(value)}
    aria-valuetext={value}
    onInput={({ currentTarget }) => onPick(stops[Number(currentTarget.value)]!)}
  />
);
