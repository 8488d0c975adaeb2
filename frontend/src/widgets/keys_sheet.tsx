import { useEffect, useRef } from "preact/hooks";
import { listedViews } from "../state.ts";
import { letters } from "./keys.ts";

const KEYS = [
  ["/", "Filter the rows"],
  ["j", "Next row"],
  ["k", "Row before"],
  ["Enter", "Open or close the row"],
  ["← →", "Fold or unfold the row of a tree; in a flame graph, the box beside"],
  ["?", "This sheet"],
];

/** What the keys do. */
export function KeysSheet({ onClose }: { onClose: () => void }) {
  const dialog = useRef<HTMLDialogElement>(null);
  useEffect(() => dialog.current?.showModal(), []);
  const letter = letters(listedViews.value);
  return (
    <dialog ref={dialog} onClose={onClose} aria-labelledby="keys">
      <h2 id="keys">Keys</h2>
      <dl>
        {KEYS.map(([key, meaning]) => [
          <dt key={key}>
            <kbd>{key}</kbd>
          </dt>,
          <dd key={meaning}>{meaning}</dd>,
        ])}
        {listedViews.value.filter(({ id }) => letter.get(id)).map(({ id, title }) => [
          <dt key={id}>
            <kbd>g</kbd> <kbd>{letter.get(id)}</kbd>
          </dt>,
          <dd key={title}>{title}</dd>,
        ])}
      </dl>
      <button type="button" onClick={() => dialog.current?.close()}>Close</button>
    </dialog>
  );
}
