import { type ComponentChildren, h } from "preact";
import type { Value } from "../../format/numbers.ts";
import { SavePicture } from "../../table/save.tsx";

interface CardProps {
  title: string;
  note?: string;
  /** Whether it is a picture, which can be saved. */
  isPicture?: boolean;
  children: ComponentChildren;
}

/** A part of a page under a heading of its own. */
export function Card({ title, note, isPicture = false, children }: CardProps) {
  return (
    <section class="card">
      <header>
        <h2>{title}</h2>
        <span>{note}</span>
        {isPicture && <SavePicture title={title} />}
      </header>
      {children}
    </section>
  );
}

/** Names and their values, below each other. */
export const Facts = ({ facts }: { facts: [Value | undefined, Value | undefined][] }) => (
  <dl class="facts">
    {facts.map(([fact, value], i) => [<dt key={`fact ${i}`}>{fact}</dt>, <dd key={`value ${i}`}>{value}</dd>])}
  </dl>
);
