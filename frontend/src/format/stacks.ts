/** Call stacks as the server gives them: frames, the innermost first, one a line. */

export interface Frame {
  text: string;
  /** The function alone, or the whole frame if it names no place in a file. */
  called: string;
  file: string;
  line: number;
}

const FRAME = /^(.*)\((\d{1,9})\): (.*)$/s;
const FOREIGN = /^(torch|<)|[/\\](site|dist)-packages[/\\]torch[/\\]|\.(c|cc|cpp|cu)$/;

/** One frame such as `train.py(12): step` or `<built-in function len>`. */
export function frameOf(text: string): Frame {
  const [, file = "", line = "0", called = text] = FRAME.exec(text) ?? [];
  return { text, called, file, line: Number(line) };
}

export const framesOf = (stack: string): Frame[] => stack.split("\n").map(frameOf);

const placeOf = (file: string, line: number) => `${file.split(/[/\\]/).at(-1)}:${line}`;

/** A frame without the folders of its file: `train.py:12 step`. */
export function shortFrame(text: string): string {
  const { called, file, line } = frameOf(text);
  return file ? `${placeOf(file, line)} ${called}` : called;
}

/** A function of C++ without its namespaces, arguments and return type. */
const bareFunction = (name: string) =>
  name.includes("::")
    ? name.replaceAll("(anonymous namespace)::", "").replace(/[(<].*/s, "").split(/::|\s/).at(-1)!
    : name;

/** What to show of a stack on one line: its innermost frame that isn't PyTorch's, and how many there are. */
export function stackLine(stack: string): string {
  const frames = framesOf(stack);
  const { called, file, line } = frames.find(({ file }) => file && !FOREIGN.test(file)) ?? frames[0]!;
  const place = file && ` ${placeOf(file, line)}`;
  return `${bareFunction(called)}${place}${frames.length > 1 ? ` · ${frames.length} frames` : ""}`;
}
