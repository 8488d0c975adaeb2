import { duration } from "./times.ts";
import { detail, selection } from "./state.ts";

/** What is below the canvas: the selected slice. */
export function Drawer() {
  const facts = detail.value;
  if (!selection.value || facts?.state !== "ready") return null;
  return (
    <section class="drawer" aria-label="Selected slice">
      <b>{facts.name}</b> {facts.category}, {duration(facts.dur_ns)}
    </section>
  );
}
