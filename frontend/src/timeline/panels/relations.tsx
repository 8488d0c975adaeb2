/** A slice's relations: its parents, what it launched, what launched it, its forward or backward half. */

import { type ComponentChildren, Fragment, h } from "preact";
import { valueText } from "../../format/event_fields.ts";
import { decimal, label, plural, quantity } from "../../format/numbers.ts";
import { Part } from "../../ui/details.tsx";
import { Stack } from "../../ui/stack.tsx";
import type { Arrow, Provenance, SliceFacts, SliceSummary } from "../../api/timeline_types.ts";
import { SliceLink, SliceList } from "./slice_link.tsx";

/** A list of titles with their slices; missing slices are left out. */
function Named({ rows }: { rows: (readonly [string, SliceSummary | null])[] }) {
  return (
    <dl class="named">
      {rows.map(([title, summary]) =>
        summary && (
          <div key={`${title} ${summary.slice}`}>
            <dt>{title}</dt>
            <dd>
              <SliceLink summary={summary} />
            </dd>
          </div>
        )
      )}
    </dl>
  );
}

type Launched = NonNullable<SliceFacts["launched"]>;

const LaunchedWork = ({ launched: { count, device_ns, total_ns, slices } }: { launched: Launched }) => (
  <Part title="GPU time below">
    <p
      data-tip={`The time in which any of the device's work that was launched inside this slice ran; the sum of their durations is ${
        quantity(total_ns, "duration")
      }`}
    >
      <b>{quantity(device_ns, "duration")}</b> in <b>{decimal(count)}</b>{" "}
      {count === 1 ? "kernel, copy or fill" : "kernels, copies and fills"}
    </p>
    <SliceList slices={slices} of={count} label="Launched" />
  </Part>
);

function ProvenancePart(
  { title, provenance: { call, op, annotations, module } }: { title: string; provenance: Provenance },
) {
  if (!call && !op && !annotations.length && !module) return null;
  return (
    <Part title={title}>
      <Named
        rows={[
          ["Call", call],
          ["Operator", op],
          ["Module", module],
          ...annotations.map((annotation) => ["Within", annotation] as const),
        ]}
      />
    </Part>
  );
}

/** The program lines that it came from: recorded Python calls, or torch's stack. */
export function Lines({ provenance: { python, stack, is_forward } }: { provenance: Provenance }) {
  const of = is_forward ? " of the forward operator" : "";
  return (
    <>
      {python.length > 0 && (
        <Part title={`Python${of}, the innermost first`}>
          <SliceList slices={python} label="Python calls" />
        </Part>
      )}
      {stack && stack.length > 0 && (
        <Part title={`Stack${of}, the innermost first`}>
          <Stack text={stack.join("\n")} />
        </Part>
      )}
    </>
  );
}

/** Arrows that another part shows already. */
const OF_PARTS = new Set(["launch", "fwdbwd"]);

function Arrows({ arrows, slice }: { arrows: Arrow[]; slice: number }) {
  const others = arrows.filter(({ kind }) => !OF_PARTS.has(kind));
  if (!others.length) return null;
  const rows = others.map(({ kind, from, to }) =>
    from.slice === slice ? [`${label(kind)} to`, to] as const : [`${label(kind)} from`, from] as const
  );
  return (
    <Part title="Arrows">
      <Named rows={rows} />
    </Part>
  );
}

function ForwardBackward({ forward, backward }: { forward: SliceSummary | null; backward: SliceSummary[] }) {
  if (!forward && !backward.length) return null;
  return (
    <Part title={forward ? "Backward of" : "Its backward"}>
      {forward && <SliceLink summary={forward} />}
      {backward.length > 0 && <SliceList slices={backward} label="Backward" />}
    </Part>
  );
}

const AMOUNTS: [RegExp, "bytes" | "duration"][] = [[/_bytes$/, "bytes"], [/_ns$/, "duration"]];

function factText(name: string, value: unknown): string {
  const [, kind] = AMOUNTS.find(([ending]) => ending.test(name)) ?? [];
  return kind && typeof value === "number" ? quantity(value, kind) : valueText(value);
}

type Facts = Record<string, unknown> | null;

/** Facts with their names; only the children where none are known. */
function Facts({ title, facts, children }: { title: string; facts: Facts; children?: ComponentChildren }) {
  const recorded = Object.entries(facts ?? {}).filter(([, value]) => value !== null);
  if (!recorded.length) return <>{children}</>;
  return (
    <Part title={title}>
      <dl class="named">
        {recorded.map(([name, value]) => (
          <div key={name}>
            <dt>{label(name)}</dt>
            <dd>{factText(name, value)}</dd>
          </div>
        ))}
      </dl>
      {children}
    </Part>
  );
}

/** Every slice that the selected one leads to; `align` stands below the facts of a collective. */
export function Relations({ facts, align }: { facts: SliceFacts; align: ComponentChildren }) {
  const { ancestors, launched, launched_by, called_from, forward, backward, arrows, slice } = facts;
  return (
    <>
      <Facts title="Collective" facts={facts.collective}>{align}</Facts>
      <Facts title="Inside the graph" facts={facts.replayed} />
      {launched && launched.count > 0 && <LaunchedWork launched={launched} />}
      {launched_by && <ProvenancePart title="Launched by" provenance={launched_by} />}
      {called_from && <ProvenancePart title="Called from" provenance={called_from} />}
      <ForwardBackward forward={forward} backward={backward} />
      <Arrows arrows={arrows} slice={slice} />
      {ancestors.length > 0 && (
        <Part title={`Inside ${plural(ancestors.length, "slice")}`}>
          <SliceList slices={ancestors} label="Parents, innermost first" />
        </Part>
      )}
    </>
  );
}
