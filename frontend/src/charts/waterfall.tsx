/** Terms of a difference, each from where those before it end: the last bar is their sum. */

import { h } from "preact";
import { exact, type Scale } from "../format/numbers.ts";
import { formatSigned } from "../table/comparison_columns.ts";

export interface Term {
  name: string;
  /** New − base, in ns. */
  delta: number;
  /** What it is, on hover. */
  tip: string;
}

interface Step extends Term {
  begin: number;
  end: number;
}

/** Where each bar begins and ends, and from 0 their sum. */
export function stepsOf(terms: Term[], total: string): Step[] {
  let at = 0;
  const steps = terms.map((term) => ({ ...term, begin: at, end: at += term.delta }));
  return [...steps, { name: total, delta: at, tip: "The sum of all of these", begin: 0, end: at }];
}

interface Props {
  terms: Term[];
  /** What their sum is. */
  total: string;
  scale: Scale;
  label: string;
  onPick: (name: string) => void;
}

/** A bar per term; growth and loss have their colors, and a click picks a term, or with the sum all of them. */
export function Waterfall({ terms, total, scale, label, onPick }: Props) {
  const steps = stepsOf(terms, total), ends = [0, ...steps.map(({ end }) => end)];
  const least = Math.min(...ends), width = Math.max(1, Math.max(...ends) - least);
  const place = (value: number) => `${100 * (value - least) / width}%`;
  return (
    <div class="waterfall" role="group" aria-label={label}>
      {steps.map(({ name, delta, tip, begin, end }, i) => (
        <button
          key={name}
          type="button"
          class={i === terms.length ? "total" : ""}
          data-tip={`${tip}\n${exact(delta, "duration")}`}
          onClick={() => onPick(i === terms.length ? "" : name)}
        >
          <span>{name}</span>
          <span class="way" style={{ "--zero": place(0) }}>
            <i
              class={delta > 0 ? "grew" : "shrank"}
              style={{ left: place(Math.min(begin, end)), width: `${100 * Math.abs(delta) / width}%` }}
            />
          </span>
          <b>{formatSigned(delta, scale)}</b>
        </button>
      ))}
    </div>
  );
}
