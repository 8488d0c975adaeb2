import { Fragment, h } from "preact";
import { openInEditor } from "../app/editor.ts";
import { plural } from "../format/numbers.ts";
import { type Frame, framesOf } from "../format/stacks.ts";
import { Copy } from "./details.tsx";

const DRAWN = 200;

/** Where a frame's function begins; a link into the editor where there is one around the page. */
function Place({ file, line }: Frame) {
  const text = `${file}:${line}`;
  if (!openInEditor) return <code class="quiet">{text}</code>;
  return (
    <button type="button" class="link" data-tip="Open in the editor" onClick={() => openInEditor?.(file, line)}>
      {text}
    </button>
  );
}

/** The frames of a stack, the innermost first. */
export function Stack({ text }: { text: string }) {
  const frames = framesOf(text);
  const left = frames.length - DRAWN;
  return (
    <div class="stack">
      <ol>
        {frames.slice(0, DRAWN).map((frame, i) => (
          <li key={i}>
            <code>{frame.called}</code> {frame.file && (
              <>
                (<Place {...frame} />)
              </>
            )}
          </li>
        ))}
      </ol>
      {left > 0 && <p class="quiet">and {plural(left, "more frame")}: copy the stack</p>}
      <Copy text={text} label="Copy stack" />
    </div>
  );
}
