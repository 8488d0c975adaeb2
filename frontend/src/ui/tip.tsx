import { h } from "preact";
import { signal } from "@preact/signals";
import { useEffect, useLayoutEffect, useRef } from "preact/hooks";
import { prose } from "./prose.tsx";

const shown = signal<{ text: string; x: number; y: number } | null>(null);

/** Shows a text next to a point until it is hidden. */
export const showTip = (text: string, x: number, y: number) => (shown.value = { text, x, y });
export const hideTip = () => (shown.value = null);

const elementWithTip = (event: Event) => event.target instanceof Element ? event.target.closest("[data-tip]") : null;

function point(element: Element) {
  const { left, bottom } = element.getBoundingClientRect();
  showTip(element.getAttribute("data-tip")!, left, bottom);
}

/** Draws the `data-tip` of whatever is under the pointer or has the focus; there is one for the whole page. */
export function Tip() {
  const box = useRef<HTMLDivElement>(null);
  useEffect(() => {
    let timer: ReturnType<typeof setTimeout> | undefined;
    const over = (event: Event) => {
      clearTimeout(timer);
      const element = elementWithTip(event);
      if (element) timer = setTimeout(() => element.isConnected && point(element), 250);
      else hideTip();
    };
    const focus = (event: Event) => {
      const element = elementWithTip(event);
      if (element?.matches(":focus-visible:not(input)")) point(element);
    };
    const leave = () => {
      clearTimeout(timer);
      hideTip();
    };
    const listeners = [["pointerover", over], ["focusin", focus], ["focusout", leave], ["pointerdown", leave], [
      "input",
      leave,
    ]] as const;
    for (const [name, listener] of listeners) document.addEventListener(name, listener);
    document.addEventListener("scroll", leave, true);
    document.addEventListener("keydown", (event) => event.key === "Escape" && leave());
  }, []);
  useLayoutEffect(() => {
    if (!shown.value || !box.current) return;
    const { x, y } = shown.value;
    const { width, height } = box.current.getBoundingClientRect();
    box.current.style.left = `${Math.max(4, Math.min(x, innerWidth - width - 8))}px`;
    box.current.style.top = `${y + 8 + height > innerHeight ? Math.max(4, y - height - 32) : y + 8}px`;
  });
  return shown.value && <div class="tip" role="tooltip" ref={box}>{prose(shown.value.text)}</div>;
}
