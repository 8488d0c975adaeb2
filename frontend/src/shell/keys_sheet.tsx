import { h } from "preact";
import { entries } from "../app/router.ts";
import { Dialog } from "../ui/dialog.tsx";
import { letters } from "../ui/keys.ts";

/** The keys of tables, which most pages have. */
export const TABLE_KEYS: [keys: string, meaning: string][] = [
  ["/", "Filter the rows"],
  ["j", "Next row"],
  ["k", "Previous row"],
  ["Enter", "Open or close the row"],
  ["← →", "In a tree table: fold or unfold the row; in a flame graph: the neighboring box"],
  ["← →", "In a chart of steps or a curve: the previous or next one; Home and End for the ends"],
  ["Enter", "In a flame graph: zoom to the box; Space unfolds its chain, Esc goes back"],
  ["+ −", "In a chart of steps or a curve: zoom in and out"],
  ["Esc", "In a chart: reset the zoom"],
  ["?", "This list of keys"],
];

/** What the keys do. */
export function KeysSheet({ keys, onClose }: { keys: [keys: string, meaning: string][]; onClose: () => void }) {
  const letter = [...letters(entries.value.map(({ title }) => title))];
  return (
    <Dialog title="Keys" onClose={onClose}>
      {() => (
        <div class="keys">
          <dl>
            {keys.map(([key, meaning]) => [
              <dt key={meaning}>{key.split(" ").map((one) => [<kbd key={one}>{one}</kbd>, " "])}</dt>,
              <dd key={`meaning ${meaning}`}>{meaning}</dd>,
            ])}
          </dl>
          <dl>
            {letter.filter(([, key]) => key).map(([title, key]) => [
              <dt key={key}>
                <kbd>g</kbd> <kbd>{key}</kbd>
              </dt>,
              <dd key={title}>{title}</dd>,
            ])}
          </dl>
        </div>
      )}
    </Dialog>
  );
}
