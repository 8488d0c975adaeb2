import { type ComponentChildren, Fragment, h } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";

interface DialogProps {
  class?: string;
  title: string;
  onClose: () => void;
  children: (close: () => void) => ComponentChildren;
}

/** What is above the page until it is closed. */
export function Dialog({ class: name, title, onClose, children }: DialogProps) {
  const dialog = useRef<HTMLDialogElement>(null);
  useEffect(() => dialog.current?.showModal(), []);
  const close = () => dialog.current?.close();
  return (
    <dialog ref={dialog} class={name} onClose={onClose} aria-label={title}>
      <h2>{title}</h2>
      {children(close)}
      <button type="button" onClick={close}>Close</button>
    </dialog>
  );
}

interface OpenerProps {
  class?: string;
  tip: string;
  words: string;
  disabled?: boolean;
  /** The dialog. */
  children: (onClose: () => void) => ComponentChildren;
}

/** A button that opens a dialog. */
export function Opener({ class: name, tip, words, disabled, children }: OpenerProps) {
  const [isOpen, show] = useState(false);
  return (
    <>
      <button
        type="button"
        class={name}
        aria-haspopup="dialog"
        disabled={disabled}
        data-tip={tip}
        onClick={() => show(true)}
      >
        {words}
      </button>
      {isOpen && children(() => show(false))}
    </>
  );
}
