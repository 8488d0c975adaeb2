import { h } from "preact";
/** A definition with its `names` in the type of code. */
export const prose = (text: string) =>
  text.split(/`([^`]+)`/).map((part, i) => i % 2 ? <code key={i}>{part}</code> : part);
