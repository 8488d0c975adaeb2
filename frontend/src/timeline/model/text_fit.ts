/** Names in narrow boxes. */

/** "<…>" and "(…)" with all that is inside them. */
function withoutBrackets(text: string, open: string, close: string): string {
  let depth = 0, outer = "";
  for (const letter of text) {
    if (letter === open) depth++;
    else if (letter === close && depth) depth--;
    else if (!depth) outer += letter;
  }
  return outer;
}

/** The most distinctive part of a name: without namespaces, return type, arguments and template arguments. */
export function shortName(name: string): string {
  if (/^(aten|prim|prims|c10d|c10|torch|quantized|inductor)::\w/.test(name)) return name.replace(/^\w+::/, "");
  const [, called] = /^(.+?) \(.*:\d+\)$/s.exec(name) ?? [];
  if (called) return called;
  const annotated = /^(?:autograd::engine::evaluate_function: |nn\.Module: )(.+)$/.exec(name);
  if (annotated) return annotated[1]!;
  if (!/[<(]/.test(name) || !/^[\w:<>,~*&\s()[\]{}#.-]+$/.test(name) || !/::|^void /.test(name)) return name;
  const bare = withoutBrackets(withoutBrackets(name.replace(/\(anonymous namespace\)::/g, ""), "<", ">"), "(", ")")
    .trim();
  const last = bare.split(/\s+/).pop()!.split("::").filter(Boolean).pop();
  return last && /\w/.test(last) ? last : name;
}

interface Measurement {
  name: string;
  width: number;
  short: string;
  shortWidth: number;
}

/** Fits names into boxes, and measures each once. */
export class TextFitter {
  private readonly cache = new Map<string, Measurement>();

  constructor(private readonly measure: (text: string) => number) {}

  /** The name, its short form, or the begin of that; empty if not even two letters and an ellipsis fit. */
  fit(name: string, room: number): string {
    const { width, short, shortWidth } = this.measured(name);
    if (width <= room) return name;
    if (shortWidth <= room) return short;
    for (let end = Math.floor(room * short.length / shortWidth); end-- > 2;) {
      const text = `${short.slice(0, end)}…`;
      if (this.measure(text) <= room) return text;
    }
    return "";
  }

  private measured(name: string): Measurement {
    const cached = this.cache.get(name);
    if (cached) return cached;
    const short = shortName(name);
    const [width, shortWidth] = [name, short].map((text) =>
      this.measure(text.slice(0, 300)) * (text.length > 300 ? 9 : 1)
    );
    const measured = { name, width: width!, short, shortWidth: shortWidth! };
    if (this.cache.size > 50_000) this.cache.clear();
    this.cache.set(name, measured);
    return measured;
  }
}
