/** The details of the selected slice. */

import { h } from "preact";
import { useState } from "preact/hooks";
import type { SearchResults, SliceFacts, Step } from "../../api/timeline_types.ts";
import { openView, viewTitle } from "../../app/router.ts";
import { decimal, exact, percent, quantity, shorten } from "../../format/numbers.ts";
import { stepNoun } from "../../format/steps.ts";
import { readableName } from "../../format/readable_names.ts";
import { colorOf } from "../draw/colors.ts";
import { currentFlow } from "../input/flow_navigation.ts";
import { findOfCollective } from "../model/collective_peers.ts";
import { stepOf } from "../model/ranges.ts";
import { onSide } from "./area_rows.tsx";
import { Lines, Relations } from "./relations.tsx";
import { SameNameStatistics } from "./same_name.tsx";
import { JumpContext } from "./slice_link.tsx";
import { alignBy } from "../state/alignment.ts";
import { detail, jumpTo, selection, setFind } from "../state/selection.ts";
import { type Source, sourceOf, sources } from "../state/sources.ts";
import { loadFrom } from "../state/traces.ts";
import { Copy, DetailsHead, Fact, Part } from "../../ui/details.tsx";
import { EventSection } from "../../ui/event_detail.tsx";
import { LinkTo } from "../../ui/link.tsx";
import { Failure, Skeleton } from "../../ui/status.tsx";

const LONGEST = 60;

/** Which of several targets of an arrow this is. */
function FlowText() {
  const { value } = currentFlow;
  if (!value || value.targets.length < 2) return null;
  const { name, forth, at, targets } = value;
  const of = shorten(readableName(name), LONGEST);
  return (
    <p class="quiet flow-position">
      {decimal(at + 1)} of {decimal(targets.length)} that {forth ? `${of} leads to` : `lead to ${of}`}; <kbd>⇧]</kbd>
      {" "}
      goes to the next
    </p>
  );
}

function Head({ facts, source }: { facts: SliceFacts; source: Source }) {
  const { name, category, previous, next } = facts;
  const go = (slice: number | null) => slice !== null && void jumpTo(source.id, slice);
  return (
    <DetailsHead short={readableName(name)} full={name} color={colorOf(category)}>
      <div class="buttons">
        <button
          type="button"
          disabled={previous === null}
          onClick={() => go(previous)}
          data-tip="The previous slice in its row: ,"
        >
          ‹ Previous
        </button>
        <button
          type="button"
          disabled={next === null}
          onClick={() => go(next)}
          data-tip="The next slice in its row: ."
        >
          Next ›
        </button>
        <Copy text={name} label="Copy name" />
      </div>
      <FlowText />
    </DetailsHead>
  );
}

const stepText = ({ phase, name }: Step) => `${stepNoun([phase])} ${name}`;

function startText(start: number, step: Step | null): string {
  const at = quantity(start, "instant");
  return step ? `${at}, ${quantity(start - step.start_ns, "duration")} into ${stepText(step)}` : at;
}

const shareText = ({ dur_ns }: SliceFacts, step: Step): string =>
  `${percent(dur_ns / (step.end_ns - step.start_ns))} % of ${stepText(step)}`;

function Facts({ facts, source }: { facts: SliceFacts; source: Source }) {
  const { category, start_ns, dur_ns, self_ns, is_finished } = facts;
  const track = source.meta.tracks[facts.track];
  const { steps } = source.meta;
  const step = steps.find(({ name }) => name === facts.step) ?? stepOf(steps, start_ns);
  const isInstant = dur_ns === 0;
  return (
    <dl class="facts">
      <Fact title="Category">{category}</Fact>
      {!isInstant && <Fact title="Duration" tip={exact(dur_ns, "duration")}>{quantity(dur_ns, "duration")}</Fact>}
      {!isInstant && self_ns !== null && (
        <Fact
          title="Self"
          tip={`${exact(self_ns, "duration")}: its duration without the slices nested in it on its track`}
        >
          {quantity(self_ns, "duration")} ({percent(self_ns / dur_ns)} %)
        </Fact>
      )}
      {step && !isInstant && <Fact title="Share">{shareText(facts, step)}</Fact>}
      <Fact title={isInstant ? "When" : "Start"} tip={`${exact(start_ns, "instant")} since the recording's origin`}>
        {startText(start_ns, step)}
      </Fact>
      <Fact title="On">{track ? `${track.process} · ${track.name}` : "unknown track"}</Fact>
      {track?.part === "projected" && (
        <Fact title="Projected">not recorded: first to last GPU event launched inside, on this stream</Fact>
      )}
      {!is_finished && <Fact title="End">damaged, or after the recording ended</Fact>}
    </dl>
  );
}

/** Links to the rows of other views that the slice is counted in. */
function RowsElsewhere({ rows }: { rows: SliceFacts["rows"] }) {
  if (!rows.length) return null;
  return (
    <Part title="In other views">
      <ul class="elsewhere">
        {rows.map(({ view, filter }) => (
          <li key={`${view} ${filter}`}>
            <LinkTo open={() => openView(view, filter)} tip={`Its row: ${filter}`}>{viewTitle(view)}</LinkTo>
          </li>
        ))}
      </ul>
    </Part>
  );
}

function WholeEvent({ offset, source }: { offset: number; source: Source }) {
  const [isShown, show] = useState(false);
  return (
    <EventSection isShown={isShown} show={show} offset={offset} place={{ ...source.place, version: source.stamp }}>
      the whole event, with its arguments
    </EventSection>
  );
}

function Slice({ facts, source }: { facts: SliceFacts; source: Source }) {
  const { name, category, offset, slice, dur_ns, same_name, rows } = facts;
  const isDevice = source.meta.tracks[facts.track]?.stream != null;
  const provenance = facts.launched_by ?? facts.called_from;
  return (
    <JumpContext.Provider value={(number) => void jumpTo(source.id, number)}>
      <article class="details" aria-label={`Slice ${readableName(name)}`}>
        <Head facts={facts} source={source} />
        <Facts facts={facts} source={source} />
        <div class="columns">
          <Relations facts={facts} align={<AlignByCollective facts={facts} source={source} />} />
          <SameNameStatistics
            same={same_name}
            slice={slice}
            dur={dur_ns}
            onFind={() => setFind(onSide({ name, category }, isDevice))}
          />
          <RowsElsewhere rows={rows} />
          {provenance && <Lines provenance={provenance} />}
        </div>
        {offset !== null && <WholeEvent key={`${source.id} ${slice}`} offset={offset} source={source} />}
      </article>
    </JumpContext.Provider>
  );
}

/** The selected slice, or what to do to select one. */
export function Details() {
  const chosen = selection.value;
  const answer = detail.value;
  const source = chosen && sourceOf(chosen.source);
  if (!chosen) {
    return (
      <p class="quiet">
        Click a slice, or search for one with <kbd>/</kbd>. Double-click zooms to it.
      </p>
    );
  }
  if (!source || !answer || answer.state === "loading") {
    return <Skeleton progress={answer?.state === "loading" ? answer.progress : null} />;
  }
  if (answer.state === "failed") return <Failure {...answer} />;
  return <Slice facts={answer} source={source} />;
}

/** Whether it ends on all ranks together: the device's part of a collective does; the host's only if there is no device. */
function endsTogether({ category, track }: SliceFacts, { meta: { tracks } }: Source): boolean {
  const isOfDevice = tracks[track]?.device !== null;
  return category === "Communication" && (isOfDevice || tracks.every(({ device }) => device === null));
}

export function AlignByCollective({ facts, source }: { facts: SliceFacts; source: Source }) {
  const [problem, setProblem] = useState("");
  if (sources.value.length < 2 || !endsTogether(facts, source)) return null;
  const begin = async () => {
    const find = findOfCollective(facts);
    const query = { find: JSON.stringify(find), at_ns: String(facts.start_ns - 1), direction: "next" };
    const answer = await loadFrom<SearchResults>(source, "timeline/find", query);
    if (answer.state === "failed") return setProblem(answer.message);
    alignBy({ by: "collective", find, before: answer.place ?? 0 });
  };
  return (
    <p class="align-by">
      <button
        type="button"
        data-tip="A collective ends on all ranks at about the same time: this aligns its ends"
        onClick={() => void begin()}
      >
        Align all workers by its end
      </button>
      {problem && <span class="problem" role="alert">{problem}</span>}
    </p>
  );
}
