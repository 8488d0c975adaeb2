/** An answer as a sentence: the banner above a page. */

import { type ComponentChildren, Fragment, h } from "preact";
import { useLayoutEffect, useRef, useState } from "preact/hooks";
import type { Failed, Loading, Missing, Table } from "../api/types.ts";
import { useAdvised, useAnswer } from "../app/answers.ts";
import { comparisonBase } from "../app/comparison_base.ts";
import { openView, viewEntry, viewTitle } from "../app/router.ts";
import { percent, quantity, unbroken } from "../format/numbers.ts";
import { useWidth } from "../ui/measure.ts";
import { LinkTo } from "../ui/link.tsx";
import { prose } from "../ui/prose.tsx";
import { ProgressLine } from "../ui/status.tsx";

/** Two lines of a text; a button shows the rest of it. */
function TwoLines({ text }: { text: string }) {
  const box = useRef<HTMLParagraphElement>(null);
  const width = useWidth(box);
  const [isOpen, open] = useState(false);
  const [isCut, cut] = useState(false);
  useLayoutEffect(() => {
    const { scrollHeight, clientHeight } = box.current!;
    if (!isOpen) cut(scrollHeight > clientHeight + 1);
  }, [text, width, isOpen]);
  return (
    <div class="evidence">
      <p ref={box} class={isOpen ? "" : "clamped"}>{prose(text)}</p>
      {isCut && (
        <button type="button" class="link" aria-expanded={isOpen} onClick={() => open(!isOpen)}>
          {isOpen ? "Less" : "More"}
        </button>
      )}
    </div>
  );
}

interface Shown {
  label: string;
  color: string;
  title: string;
  evidence: string;
  /** What to do: always in sight. */
  action?: string;
  /** Whether it is doubtful: then it isn't bold. */
  isDoubtful?: boolean;
  children: ComponentChildren;
}

/** A sentence, two lines of evidence, and on the right what it is worth. */
export function Banner({ label, color, title, evidence, action, isDoubtful, children }: Shown) {
  return (
    <section class="verdict" aria-label={label} style={{ borderColor: color }}>
      <div>
        <p class="sentence" style={isDoubtful ? "font-weight:400" : ""}>{prose(title)}</p>
        <TwoLines text={evidence} />
        {action && <p>{prose(action)}</p>}
      </div>
      <div class="worth">{children}</div>
    </section>
  );
}

const LONG_S = 3; // what is ready sooner comes without a line of progress, and a run's verdict without an outline

/** The outline of a sentence with its evidence. */
const Outline = () => (
  <div class="skeleton">
    {[62, 84].map((width) => <i key={width} style={{ width: `${width}%` }} />)}
  </div>
);

/** A finding that is more serious than what a sentence says. */
export interface Worse {
  rule: string;
  sentence: string;
}

interface Origin {
  view: string;
  isOwn?: boolean;
  /** It stands first, in its color. */
  worse?: Worse;
}

interface FirstRow extends Origin {
  answer: Loading | Failed | Missing | Table | null;
}

/** The first row of a view as a sentence; unless it is the page's own, not one that "can't tell". */
export const Sentence = (origin: Origin) => (
  <FirstRow {...origin} answer={useAdvised(origin.view, useAnswer(origin.view)).answer} />
);

/** The same of an answer that is there. */
export function FirstRow({ view, answer, isOwn = false, worse }: FirstRow) {
  const { entry, picture } = viewEntry(view)!, label = entry.title;
  if (!answer || answer.state === "loading") {
    const progress = answer?.progress ?? null, isLong = (progress?.seconds_left ?? 0) > LONG_S;
    if (!isOwn && !isLong) return null;
    return (
      <section class="verdict" aria-label={label}>
        {isLong ? <ProgressLine progress={progress} /> : <Outline />}
      </section>
    );
  }
  if (answer?.state !== "ready" || picture?.kind !== "sentence") return null;
  const { data, note } = answer;
  const rows = data[picture.texts[0]!]?.length;
  if (!rows) return null;
  const [saving, share] = (picture.amounts ?? []).map((name) => data[name]![0]);
  const textIn = (name: string) => unbroken(String(data[name]![0] ?? ""));
  const whose = comparisonBase.value ? "New: " : "";
  const [ownRule, ownTitle, evidence, confidence, moreIn] = picture.texts.map(textIn);
  const rule = worse?.rule ?? ownRule, title = worse ? `${unbroken(worse.sentence)} ${ownTitle}` : ownTitle;
  const action = picture.action ? textIn(picture.action) : "";
  if (confidence === "cannot_tell" && !isOwn) return null;
  const others = rows - 1;
  const more = others > 0 ? ` ${others} more ${others === 1 ? "rank is" : "ranks are"} slow.` : "";
  const hasSaving = typeof saving === "number" && typeof share === "number";
  return (
    <>
      {note && <p class="cut" role="note">{unbroken(note)}</p>}
      <Banner
        label={label}
        color={`var(--${picture.colors[rule!] ?? rule})`}
        title={whose + title}
        isDoubtful={!!note}
        evidence={evidence + more}
        action={hasSaving || isOwn || !picture.amounts ? action : ""}
      >
        {hasSaving && (
          <>
            <b data-tip="If the rank were as fast as the next one">up to −{quantity(saving, "duration")}</b>
            <small>{percent(share)} % of the average step · confidence {confidence}</small>
          </>
        )}
        {confidence === "low" && <b>low confidence</b>}
        {!(isOwn && viewEntry(moreIn!)?.entry.title === entry.title) && (
          <LinkTo open={() => openView(moreIn!)}>{viewTitle(moreIn!)}</LinkTo>
        )}
      </Banner>
    </>
  );
}
