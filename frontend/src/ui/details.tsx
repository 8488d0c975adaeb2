/** The parts of what a drawer shows of a slice, or of a row of a table. */

import { type ComponentChildren, Fragment, h } from "preact";
import { useEffect, useState } from "preact/hooks";
import { copy } from "./copy.ts";

const SHOWN_MS = 2000;

interface CopyProps {
  text: string;
  label: string;
  confirmation?: string;
}

/** A button that copies a text and confirms it. */
export function Copy({ text, label, confirmation = "Copied" }: CopyProps) {
  const [isCopied, setIsCopied] = useState(false);
  useEffect(() => {
    if (!isCopied) return;
    const timer = setTimeout(() => setIsCopied(false), SHOWN_MS);
    return () => clearTimeout(timer);
  }, [isCopied]);
  return (
    <>
      <button type="button" onClick={() => copy(text).then(() => setIsCopied(true))}>{label}</button>
      <span class="quiet" role="status">{isCopied ? confirmation : ""}</span>
    </>
  );
}

interface HeadProps {
  /** The readable name, and the whole one. */
  short: string;
  full: string;
  /** Of its category; none for a row. */
  color?: string;
  /** Buttons. */
  children: ComponentChildren;
}

/** The name of what the details are about, and what to do with it. */
export const DetailsHead = ({ short, full, color, children }: HeadProps) => (
  <header>
    <h2>
      {color && <i class="swatch" style={{ background: color }} aria-hidden="true" />}
      <code>{short || "(no name)"}</code>
    </h2>
    {short !== full && (
      <p class="full-name" tabIndex={0}>
        <code>{full}</code>
      </p>
    )}
    {children}
  </header>
);

export const Part = ({ title, children }: { title: string; children: ComponentChildren }) => (
  <section aria-label={title}>
    <h3>{title}</h3>
    {children}
  </section>
);

/** A name and its value. */
export const Fact = ({ title, tip, children }: { title: string; tip?: string; children: ComponentChildren }) => (
  <div data-tip={tip}>
    <dt>{title}</dt>
    <dd>{children}</dd>
  </div>
);
