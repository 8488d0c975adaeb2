/** A list with a filter, to choose a run or a recording among many. */

import { Fragment, h } from "preact";
import { useState } from "preact/hooks";
import { runFilter } from "../format/run_filter.ts";
import { Dialog } from "../ui/dialog.tsx";

const MOST = 200;

export interface Choice {
  key: string;
  /** What its heading says, if it has one: choices of one group follow each other. */
  group: string;
  name: string;
  note: string;
  isChosen?: boolean;
  pick: () => void;
}

interface Props {
  title: string;
  label: string;
  placeholder: string;
  choices: Choice[];
  onClose: () => void;
}

/** Enter takes the only hit. */
export function Picker({ title, label, placeholder, choices, onClose }: Props) {
  const [text, filter] = useState("");
  const matches = runFilter(text);
  const matching = choices.filter(({ group, name, note }) => matches(`${group && `${group}/`}${name}`, note));
  return (
    <Dialog class="picker" title={title} onClose={onClose}>
      {(close) => {
        const take = ({ pick }: Choice) => (pick(), close());
        return (
          <>
            <input
              type="search"
              placeholder={placeholder}
              aria-label={`Filter ${label.toLowerCase()}`}
              data-tip="Regular expressions, in any case; all of them must match"
              value={text}
              onInput={({ currentTarget: { value } }) => filter(value)}
              onKeyDown={({ key }) => key === "Enter" && matching.length === 1 && take(matching[0]!)}
            />
            <ul aria-label={label}>
              {matching.slice(0, MOST).map((choice, i) => (
                <li key={choice.key}>
                  {choice.group !== (matching[i - 1]?.group ?? "") && <h3>{choice.group}</h3>}
                  <button type="button" aria-current={choice.isChosen || undefined} onClick={() => take(choice)}>
                    <b>{choice.name}</b>
                    {choice.note && <span>{choice.note}</span>}
                  </button>
                </li>
              ))}
            </ul>
            {!matching.length && <p class="quiet">Nothing matches.</p>}
            {matching.length > MOST && <p class="quiet">Filter to see the other {matching.length - MOST}.</p>}
          </>
        );
      }}
    </Dialog>
  );
}
