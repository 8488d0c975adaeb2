import type { Table } from "../api.ts";
import { percent, quantity } from "../format.ts";
import { openRows, type Shown, viewTitle } from "../state.ts";
import { slicesOfAdvice } from "../row_slices.ts";
import { ShowInTimeline } from "../widgets/in_timeline.tsx";
import { prose } from "../widgets/prose.tsx";
import { Answered } from "../widgets/waiting.tsx";

/** The rule that says what is in order; it comes last, and alone if nothing was found. */
const NOTHING = "nothing_to_fix";

/** The ink of what a rule is about: that of its part of the step. */
const INKS: Record<string, string> = {
  data_loading: "var(--dataloader)",
  worker_start: "var(--dataloader)",
  communication: "var(--communication)",
  gloo: "var(--communication)",
  copies: "var(--memcpy)",
  mixed_precision: "var(--kernel)",
  channels_last: "var(--kernel)",
  small_kernels: "var(--kernel)",
  small_operators: "var(--cpu-exec)",
  [NOTHING]: "var(--kernel)",
};

interface Piece {
  rule: string;
  title: string;
  evidence: string;
  action: string;
  saving: number | null;
  share: number | null;
  confidence: string;
  view: string;
  filter: string;
}

/** Keeps numbers and their units on one line. */
export const unbroken = (text: string) => text.replace(/(\d) (?=%|[nµm]?s\b|[KMGT]i?B\b)/g, "$1\u00a0");

function pieces({ data }: Table): Piece[] {
  const text = (name: string, i: number) => unbroken(String(data[name]![i] ?? ""));
  return data.rule!.map((rule, i) => ({
    rule: String(rule),
    title: text("title", i),
    evidence: text("evidence", i),
    action: text("action", i),
    saving: data.saving_ns![i] as number | null,
    share: data.saving_frac![i] as number | null,
    confidence: text("confidence", i),
    view: text("view", i),
    filter: text("filter", i),
  }));
}

/** What a saving is of: each step, or all there is if no steps were marked. */
const per = (isWhole: boolean) => (isWhole ? "" : " per step");

function Saving({ piece: { saving, share }, isWhole }: { piece: Piece; isWhole: boolean }) {
  if (saving === null) return null;
  return (
    <>
      {" "}Fixing it would save at most <b>{quantity(saving, "duration")}</b>
      {per(isWhole)} ({percent(share)} %).
    </>
  );
}

/** Where in the timeline it is seen. */
function InTimeline({ piece: { rule, view, filter } }: { piece: Piece }) {
  const slices = rule === NOTHING ? null : slicesOfAdvice(rule, view, filter);
  return slices && <ShowInTimeline slices={slices} />;
}

/** The answer first: the largest finding as one sentence, what shows it, and what it is worth. */
export function Verdict({ shown, isWhole }: { shown: Shown; isWhole: boolean }) {
  return (
    <Answered shown={shown} title="Advice">
      {(table) => {
        const piece = pieces(table)[0];
        if (!piece) return null;
        return (
          <section class="verdict" aria-label="Verdict" style={{ borderColor: INKS[piece.rule] ?? "var(--runtime)" }}>
            <p class="sentence">{prose(piece.title)}</p>
            <p>
              {prose(piece.evidence)}
              <Saving piece={piece} isWhole={isWhole} /> <InTimeline piece={piece} />
            </p>
          </section>
        );
      }}
    </Answered>
  );
}

function Worth({ piece: { rule, saving, share, confidence } }: { piece: Piece }) {
  if (rule === NOTHING) return <b class="quiet">nothing to fix</b>;
  if (saving === null) return <b class="quiet">no matter of time</b>;
  return (
    <>
      <b data-tip="The most that this could save: other causes may hide behind it">
        up to −{quantity(saving, "duration")}
      </b>
      <small>
        {percent(share)} %, confidence {confidence}
      </small>
    </>
  );
}

/** Every finding with its action, the largest saving first; the sentence of the first one stands in the verdict. */
export function WhatToDo({ data }: { data: Table }) {
  return (
    <ul class="advice">
      {pieces(data).map((piece, i) => {
        const isFound = piece.rule !== NOTHING;
        if (!isFound && i === 0) return <li key={piece.rule} class="all-well">Nothing that this recording shows.</li>;
        return (
          <li key={piece.rule}>
            <div class="worth">
              <Worth piece={piece} />
            </div>
            <div>
              {prose(isFound ? piece.action : piece.title)}
              <p>
                {isFound && i > 0 && `${piece.title} `}
                {i > 0 && prose(piece.evidence)}
                {i === 0 && piece.title} {i > 0 && <InTimeline piece={piece} />}
              </p>
            </div>
            <button type="button" class="link" onClick={() => openRows(piece.view, piece.filter)}>
              {viewTitle(piece.view)}
              <span aria-hidden="true">→</span>
            </button>
          </li>
        );
      })}
    </ul>
  );
}
