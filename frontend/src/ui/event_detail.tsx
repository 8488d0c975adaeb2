import { type ComponentChildren, Fragment, h } from "preact";
import type { Failed, RawEvent } from "../api/types.ts";
import { type TracePlace, useEvent } from "../app/answers.ts";
import { retry } from "../app/router.ts";
import { eventFields, type Field, truncateText } from "../format/event_fields.ts";
import { plural } from "../format/numbers.ts";
import { Copy } from "./details.tsx";
import { ProgressLine } from "./status.tsx";

/** Literal text from the trace; very long texts are cut, with a note. */
function Text({ text }: { text: string }) {
  const { drawn, omitted } = truncateText(text);
  return (
    <>
      <code>{drawn}</code>
      {omitted > 0 && <span class="quiet">… and {plural(omitted, "more character")}: copy the original</span>}
    </>
  );
}

const Fields = ({ fields }: { fields: Field[] }) => (
  <dl>
    {fields.map(([name, text]) => (
      <div key={name}>
        <dt>
          <code>{name}</code>
        </dt>
        <dd>
          <Text text={text} />
        </dd>
      </div>
    ))}
  </dl>
);

function Parts({ value }: { value: Record<string, unknown> }) {
  const { name, category, fields, args } = eventFields(value);
  return (
    <>
      <h2>{name === null ? "An event without a name" : <Text text={name} />}</h2>
      <p class="quiet">{category === null ? "No category" : <>Category {category}</>}</p>
      <Fields fields={fields} />
      <h3>{args.length ? plural(args.length, "argument") : "No arguments"}</h3>
      <Fields fields={args} />
    </>
  );
}

function EventView({ event: { offset, length, text, value, problem } }: { event: RawEvent }) {
  return (
    <>
      {problem && <p class="problem">{problem}</p>}
      {value ? <Parts value={value} /> : (
        <pre>
          <Text text={text} />
        </pre>
      )}
      <p class="quiet">
        Bytes {offset} to {offset + length - 1} of the decompressed file, {plural(length, "byte")}
      </p>
      <Copy text={text} label="Copy the original" confirmation={`${plural(text.length, "character")} copied`} />
    </>
  );
}

function EventProblem({ offset, failed: { code, message } }: { offset: number; failed: Failed }) {
  const isNone = code === "not_found";
  return (
    <div role="alert">
      <h2>{isNone ? `No event begins at byte ${offset}` : "The event can't be shown"}</h2>
      {isNone && (
        <p>
          This diagnostic may be about a damaged place, or about the whole file.
        </p>
      )}
      <p class={isNone ? "quiet" : ""}>{message}</p>
      {!isNone && <button type="button" onClick={retry}>Try again</button>}
    </div>
  );
}

/** The event at this byte offset of a trace with all its fields; of the selected trace without `place`. */
function EventDetail({ offset, place }: { offset: number; place?: TracePlace }) {
  const answer = useEvent(offset, place);
  return (
    <section class="event" aria-label={`Event at byte ${offset}`}>
      {answer?.state === "ready" && <EventView event={answer} />}
      {answer?.state === "failed" && <EventProblem offset={offset} failed={answer} />}
      {(!answer || answer.state === "loading") && (
        <div class="skeleton">
          <ProgressLine progress={answer?.progress ?? null} />
        </div>
      )}
    </section>
  );
}

interface SectionProps {
  isShown: boolean;
  show: (isShown: boolean) => void;
  offset: number;
  place?: TracePlace;
  children: ComponentChildren;
}

/** The recorded event below a button that shows it. */
export const EventSection = ({ isShown, show, offset, place, children }: SectionProps) => (
  <section aria-label="The recorded event">
    <button type="button" aria-expanded={isShown} onClick={() => show(!isShown)}>
      {isShown ? "Hide" : "Show"} {children}
    </button>
    {isShown && <EventDetail offset={offset} place={place} />}
  </section>
);
