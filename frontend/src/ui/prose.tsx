import { h } from "preact";
/** A sentence with its `code` in the type of code, and its *Entry* of the page emphasized. */
export const prose = (text: string) =>
  text.split(/(`[^`]+`|(?<=^|\s)\*[A-Z][\w ]*\*)/).map((part, i) => {
    const Tag = part[0] === "`" ? "code" : "em";
    return i % 2 ? <Tag key={i}>{part.slice(1, -1)}</Tag> : part;
  });
