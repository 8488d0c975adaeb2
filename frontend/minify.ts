/**
 * Minifies the bundle again, with its style sheets, and compresses it once for all requests.
 *
 * Names that Terser gives to local variables compress better than esbuild's, by 4 %; Zopfli finds 3 % more than gzip.
 * Both find repetitions within 32 KB only: declarations next to similar ones take 2 % less. Which order takes least
 * depends on chance by 0.3 %, so that several are tried.
 */

import { gzipAsync } from "@gfx/zopfli";
import { gzipSync } from "node:zlib";
import { type Expression, parse, type SpreadElement } from "acorn";
import { minify } from "terser";

const STYLES = "src/styles";
const WINDOW = 32_000; // letters that DEFLATE looks back, about
const GRAM = 4; // letters of what may repeat
const MARGINS = [8, 9, 11, 12, 14, 15, 17, 19]; // letters added to each declaration, for orders with short ones later

/** A style sheet without comments and needless white space. A space before a colon may be a descendant combinator. */
export const squeeze = (sheet: string) =>
  sheet
    .replace(/\/\*.*?\*\//gs, "")
    .replace(/\s+/g, " ")
    .replace(/ ?([{};,>]) ?/g, "$1")
    .replaceAll(": ", ":")
    .replaceAll(";}", "}")
    .trim();

/** The code without the declarations of fields that have no value before the constructor, as TypeScript writes them. */
export const dropFields = (code: string) => code.replace(/(?<=[{;}])(?:[\w$]+;)+(?=constructor\()/g, "");

/** The text as esbuild writes it in a template literal. */
const quote = (text: string) => {
  const escaped = text.replace(/[\\`]|\$(?=\{)/g, "\\$&");
  return "`" + escaped.replace(/[^\0-\xff]/g, (one) => "\\u" + one.charCodeAt(0).toString(16).toUpperCase()) + "`";
};

function squeezeStyles(bundle: string): string {
  for (const { name } of Deno.readDirSync(STYLES)) {
    const sheet = Deno.readTextFileSync(`${STYLES}/${name}`);
    if (!bundle.includes(quote(sheet))) throw new Error(`The bundle lacks ${name}`);
    bundle = bundle.replace(quote(sheet), () => quote(squeeze(sheet)));
  }
  return bundle;
}

/** Something at the top level of the bundle. */
interface Unit {
  text: string;
  isVariable: boolean;
  /** Functions exist from the start, constants from where they stand; the rest is evaluated there, in order. */
  kind: "function" | "constant" | "evaluated";
}

/** Whether the value depends on nothing else. */
function isConstant(value: Expression | SpreadElement | null | undefined): boolean {
  if (!value) return true;
  switch (value.type) {
    case "ArrowFunctionExpression":
    case "FunctionExpression":
    case "Literal":
      return true;
    case "TemplateLiteral":
      return !value.expressions.length;
    case "UnaryExpression":
      return isConstant(value.argument);
    case "ArrayExpression":
      return value.elements.every(isConstant);
    case "ObjectExpression":
      return value.properties.every((one) => one.type === "Property" && !one.computed && isConstant(one.value));
  }
  return false;
}

const unitsOf = (code: string): Unit[] =>
  parse(code, { ecmaVersion: "latest", sourceType: "module" }).body.flatMap((node): Unit[] => {
    const textOf = ({ start, end }: { start: number; end: number }) => code.slice(start, end);
    if (node.type === "FunctionDeclaration") return [{ text: textOf(node), isVariable: false, kind: "function" }];
    if (node.type !== "VariableDeclaration" || node.kind !== "var") {
      return [{ text: textOf(node).replace(/;?$/, ";"), isVariable: false, kind: "evaluated" }];
    }
    return node.declarations.map((one) => ({
      text: textOf(one),
      isVariable: true,
      kind: isConstant(one.init) ? "constant" : "evaluated",
    }));
  });

const print = (units: Unit[]) =>
  units.map(({ text, isVariable }, i) => {
    const isNext = units[i - 1]?.isVariable;
    return (isNext ? (isVariable ? "," : ";") : isVariable ? "var " : "") + text;
  }).join("");

const gramsOf = ({ text }: Unit) => [
  ...new Set(Array.from({ length: Math.max(0, text.length - GRAM + 1) }, (_, i) => text.slice(i, i + GRAM))),
];

/** How much of each unit repeats what is in the window; rare sequences of letters count most. */
class Repetition {
  readonly share: Float64Array;
  private readonly grams: string[][];
  private readonly holders = new Map<string, number[]>();
  private readonly inWindow = new Map<string, number>();

  constructor(units: Unit[], private readonly margin: number) {
    this.grams = units.map(gramsOf);
    this.share = new Float64Array(units.length);
    this.grams.forEach((grams, i) => {
      for (const gram of grams) this.holders.set(gram, [...this.holders.get(gram) ?? [], i]);
    });
  }

  /** Takes a unit into the window, or out of it. */
  move(unit: number, by: 1 | -1) {
    for (const gram of this.grams[unit]!) {
      const before = this.inWindow.get(gram) ?? 0, holders = this.holders.get(gram)!;
      this.inWindow.set(gram, before + by);
      if (before && before + by) continue;
      for (const one of holders) {
        this.share[one]! += by / Math.sqrt(holders.length) / (this.grams[one]!.length + this.margin);
      }
    }
  }
}

/** The units that can stand next: what is evaluated waits for what stood before it, except for functions. */
function* candidates(units: Unit[], left: Set<number>) {
  let canEvaluate = true;
  for (const i of left) {
    const { kind } = units[i]!;
    if (kind !== "evaluated" || canEvaluate) yield i;
    if (kind !== "function") canEvaluate = false;
  }
}

/** The same program, with each declaration after those that it repeats most of. */
export function gatherSimilar(code: string, margin = 20): string {
  const units = unitsOf(code), repetition = new Repetition(units, margin);
  const left = new Set(units.keys()), order: number[] = [];
  let first = 0, length = 0; // of the window
  while (left.size) {
    const next = [...candidates(units, left)].reduce((a, b) => repetition.share[b]! > repetition.share[a]! ? b : a);
    left.delete(next);
    order.push(next);
    repetition.move(next, 1);
    for (length += units[next]!.text.length; length > WINDOW; length -= units[order[first++]!]!.text.length) {
      repetition.move(order[first]!, -1);
    }
  }
  return print(order.map((i) => units[i]!));
}

if (import.meta.main) {
  const path = Deno.args[0]!;
  const bundle = squeezeStyles(await Deno.readTextFile(path));
  // Arrow functions lack a prototype, and nothing here uses that of a function without `this`.
  const compress = { passes: 3, unsafe_arrows: true };
  const { code } = await minify(dropFields(bundle), { module: true, ecma: 2020, compress });
  const pages = MARGINS.map((margin) => gatherSimilar(code!, margin));
  const sizes = pages.map((page) => gzipSync(page, { level: 9 }).length);
  const page = pages[sizes.indexOf(Math.min(...sizes))]!;
  await Deno.writeTextFile(path, page);
  await Deno.writeFile(`${path}.gz`, await gzipAsync(new TextEncoder().encode(page), { numiterations: 15 }));
}
