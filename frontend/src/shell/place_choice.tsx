import { Fragment, h } from "preact";
import type { Address } from "../app/host.ts";
import { listing, placeIn, spanLabel, workersOf } from "../app/router.ts";
import { plural } from "../format/numbers.ts";
import { folderAndName } from "../format/run_filter.ts";
import { Opener } from "../ui/dialog.tsx";
import { Picker } from "./picker.tsx";
import { Selector } from "./selector.tsx";

interface Props {
  place: { run?: string; worker?: string; span?: string };
  isBase?: boolean;
  open: (place: Address) => void;
}

const NO_TRACE = "no trace";
const MANY = 12; // runs, of which a menu is hard to look through

/** All runs by folder, with a filter. */
function RunFinder({ run, title, pick }: { run: string; title: string; pick: (run: string) => void }) {
  const runs = listing.value?.runs ?? [];
  if (runs.length < MANY) return null;
  const choices = runs.map(({ name, label, workers }) => {
    const [group, short] = folderAndName(label);
    const note = workers.length > 1 ? plural(workers.length, "worker") : workers.length ? "" : NO_TRACE;
    return { key: name, group, name: short, note, isChosen: name === run, pick: () => pick(name) };
  });
  choices.sort((a, b) => Number(a.group > b.group) - Number(a.group < b.group)); // without a folder first
  return (
    <Opener words={`Find a ${title.toLowerCase()}…`} class="link find-run" tip={`Filter ${runs.length} runs`}>
      {(onClose) => <Picker {...{ title, label: "Runs", placeholder: "Filter runs (regex)", choices, onClose }} />}
    </Opener>
  );
}

/** Menus of runs, their workers and their spans. */
export function PlaceChoice({ place: { run = "", worker = "", span = "" }, isBase, open }: Props) {
  const runs = listing.value?.runs ?? [], workers = workersOf(run);
  const spans = workers.find(({ name }) => name === worker)?.spans ?? [];
  const title = (word: string) => isBase ? `Base ${word.toLowerCase()}` : word;
  return (
    <>
      <Selector
        title={title("Run")}
        value={run}
        options={runs.map(({ name, label, workers }) => [name, workers.length ? label : `${label} (${NO_TRACE})`])}
        isByFolder
        onPick={(name) => open(placeIn(name, worker, span))}
      />
      <RunFinder run={run} title={title("Run")} pick={(name) => open(placeIn(name, worker, span))} />
      <Selector
        title={title("Worker")}
        value={worker}
        options={workers.map(({ name }) => [name, name])}
        onPick={(name) => open(placeIn(run, name, span))}
      />
      <Selector
        title={title("Span")}
        value={span}
        options={spans.map((span) => [span.name, spanLabel(run, worker, span)])}
        onPick={(name) => open({ run, worker, span: name })}
      />
    </>
  );
}
