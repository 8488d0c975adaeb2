/** Call stacks as the server gives them: frames, the innermost first, one a line. */

export interface Frame {
  text: string;
  /** The function alone, or the whole frame if it names no place in a file. */
  called: string;
  file: string;
  line: number;
}

const FRAME = /^(.*[./\\>](?:.*\S)?)\((\d{1,9})\): (.+)$/s;
const FOREIGN = /^(torch|<)|[/\\](site|dist)-packages[/\\]torch[/\\]|\.(c|cc|cpp|cu)$/;

/** One frame such as `train.py(12): step` or `<built-in function len>`. */
export function frameOf(text: string): Frame {
  // The pattern alone would look at all of a kernel's long name, for each slice that is drawn.
  const [, file = "", line = "0", called = text] = (text.includes("): ") && FRAME.exec(text)) || [];
  return { text, called, file, line: Number(line) };
}

export const framesOf = (stack: string): Frame[] => stack.split("\n").map(frameOf);

/** What a frame is called wherever it is shown, `step (train.py:12)`; `names/python_frames.py` has the same rule. */
export const frameText = ({ called, file, line }: Frame): string => file ? `${called} (${file}:${line})` : called;

const withoutFolders = (frame: Frame): Frame => ({ ...frame, file: frame.file.split(/[/\\]/).at(-1)! });

/** The same without the folders of the file. */
export const shortFrame = (text: string): string => frameText(withoutFolders(frameOf(text)));

/** A place in the code with `…` for its folders: `step (…/train.py:12)`; any other text as it is. */
export const cutFolders = (text: string): string => text.replace(/(^|\()[^(]*[/\\](?=[^/\\]+[:(]\d)/s, "$1…/");

const PLACE = /^(.* \()?([^()]*?)(:\d+\)?)$/s;
const SHORTEST = 7; // characters of a function and of a file that say something

/**
 * A place in the code so that it fits: `long_function_na… (…train.py:12)`. The line stays, of the function its beginning
 * and of the file its end. Empty if it is no place, or if no part of it fits.
 */
export function cutPlace(text: string, fits: (text: string) => boolean): string {
  const [, before = "", file = "", line] = PLACE.exec(text) ?? [], name = before.slice(0, -2);
  if (!line) return "";
  const cut = (letters: number, from: number) =>
    (before && (letters < name.length ? `${name.slice(0, letters)}… (` : before)) +
    (from ? `…${file.slice(from)}` : file) + line;
  let [letters, from] = [name.length, 0];
  while (!fits(cut(letters, from))) {
    if (letters > SHORTEST) letters--;
    else if (file.length - from > SHORTEST) from++;
    else return "";
  }
  return cut(letters, from);
}

/** A function of C++ without its namespaces, arguments and return type. */
const bareFunction = (name: string) =>
  name.includes("::")
    ? name.replaceAll("(anonymous namespace)::", "").replace(/[(<].*/s, "").split(/::|\s/).at(-1)!
    : name;

/** What to show of a stack on one line: its innermost frame that isn't PyTorch's, and how many there are. */
export function stackLine(stack: string): string {
  const frames = framesOf(stack);
  const frame = frames.find(({ file }) => file && !FOREIGN.test(file)) ?? frames[0]!;
  const text = frameText(withoutFolders({ ...frame, called: bareFunction(frame.called) }));
  return `${text}${frames.length > 1 ? ` · ${frames.length} frames` : ""}`;
}
