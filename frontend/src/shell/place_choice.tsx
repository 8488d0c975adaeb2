import { Fragment, h } from "preact";
import type { Address } from "../app/host.ts";
import { listing, placeIn, spanLabel, workersOf } from "../app/router.ts";
import { Selector } from "./selector.tsx";

interface Props {
  place: { run?: string; worker?: string; span?: string };
  isBase?: boolean;
  open: (place: Address) => void;
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
        options={runs.map(({ name, label }) => [name, label])}
        onPick={(name) => open(placeIn(name, worker, span))}
      />
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
