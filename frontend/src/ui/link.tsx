import { type ComponentChildren, h } from "preact";

interface Props {
  open: () => void;
  tip?: string;
  children: ComponentChildren;
}

/** A button that reads as a link to another place of the page. */
export const LinkTo = ({ open, tip, children }: Props) => (
  <button type="button" class="link" data-tip={tip} onClick={open}>
    {children} <span aria-hidden="true">→</span>
  </button>
);
