/** What a flame graph shows: all calls from their threads, or one function between its callers and its callees. */

import { plural } from "../format/numbers.ts";
import type { Ready } from "../table/columns.ts";
import { inPreorder, type Tree } from "../table/tree.ts";
import {
  calleesOf,
  callersOf,
  type CallTree,
  callTreeOf,
  type FunctionTime,
  functionTimes,
  layersName,
  withEqualLayersMerged,
} from "./call_tree.ts";
import type { BoxRef, Part, Scene } from "./flame_canvas.ts";
import { layOut, levelOf } from "./flame_layout.ts";

export type Mode = "layers" | "heavy" | "calls" | "sandwich";

export interface Calls {
  tree: CallTree;
  preorder: Uint32Array;
  roots: number[];
  total: number;
}

type Namer = (row: number) => string;

const valuesOf = ({ columns }: Ready, column: string) => columns.find(({ name }) => name === column)?.values;

/** What tells functions with one name apart. */
function functionNamer(ready: Ready): (row: number) => string {
  const parts = ["kind", "file", "line"].map((name) => valuesOf(ready, name));
  return (row) => [ready.nameOf(row), ...parts.map((values) => values?.[row] ?? "")].join("\n");
}

/** The calls below the roots that are shown. */
export function shownCalls(
  ready: Ready,
  table: Tree,
  values: readonly (number | null)[],
  isHidden: (root: number) => boolean,
): Calls {
  const tree = callTreeOf(table, functionNamer(ready), values);
  const all = inPreorder(table, Uint32Array.from(table.parent, (_, row) => row));
  const shown = new Uint8Array(all.length);
  for (const row of all) {
    const parent = table.parent[row]!;
    shown[row] = parent < 0 ? Number(!isHidden(row)) : shown[parent]!;
  }
  const preorder = all.filter((row) => shown[row]);
  const roots = Array.from(preorder.filter((row) => table.parent[row]! < 0));
  return { tree, preorder, roots, total: roots.reduce((sum, row) => sum + tree.value[row]!, 0) };
}

/** All calls, callees below their callers. */
export function callScene({ tree, roots, total }: Calls, isByTime: boolean, open: ReadonlySet<number>): Scene {
  const boxes = layOut(tree, roots, isByTime, open);
  return { parts: [{ tree, boxes, line: 0, isUpward: false }], lines: boxes.starts.length - 1, total };
}

/** All modules, equal ones side by side as one. */
export function layersScene({ tree, preorder, total }: Calls, nameOf: Namer, open: ReadonlySet<number>): Scene {
  const merged = withEqualLayersMerged(tree, preorder, nameOf);
  const roots = Array.from(merged.parent.keys()).filter((node) => merged.parent[node]! < 0);
  const boxes = layOut(merged, roots, true, open);
  return { parts: [{ tree: merged, boxes, line: 0, isUpward: false }], lines: boxes.starts.length - 1, total };
}

/** How often the class of modules that is there most often is in one place. */
export const mostEqualLayers = ({ tree, preorder }: Calls, nameOf: Namer): number =>
  withEqualLayersMerged(tree, preorder, nameOf).count!.reduce((a, b) => Math.max(a, b), 0);

/** A function with its callers above and its callees below. */
export function sandwichScene({ tree, preorder }: Calls, name: number, open: ReadonlySet<number>): Scene {
  const callees = calleesOf(tree, preorder, name), callers = callersOf(tree, preorder, name);
  const below = layOut(callees, [0], true, open);
  const opened = new Set([...open].map((node) => node - callees.parent.length));
  const above = layOut(callers, [0], true, opened);
  const line = above.starts.length - 2;
  const parts = [{ tree: callees, boxes: below, line, isUpward: false }, {
    tree: callers,
    boxes: above,
    line,
    isUpward: true,
  }];
  return { parts, lines: line + below.starts.length - 1, total: callees.value[0] ?? 0 };
}

export const functionsOf = ({ tree, preorder }: Calls): FunctionTime[] => functionTimes(tree, preorder);

/** The number of a box's first call; those of the second part follow those of the first. */
export const nodeOf = ({ parts }: Scene, { part, box }: BoxRef): number =>
  parts[part]!.boxes.node[box]! + (part ? parts[0]!.tree.parent.length : 0);

/** The box that begins with a call; null if a closed chain has it inside. */
export function boxOf({ parts }: Scene, node: number): BoxRef | null {
  const before = parts[0]?.tree.parent.length ?? 0;
  const part = node >= before ? 1 : 0;
  const box = parts[part]?.boxes.node.indexOf(node - (part ? before : 0)) ?? -1;
  return box < 0 ? null : { part, box };
}

export const rowOf = ({ parts }: Scene, { part, box }: BoxRef): number => {
  const { tree, boxes } = parts[part]!;
  return tree.row[boxes.node[box]!]!;
};

/** The line that a box is drawn on. */
export function lineOf({ parts }: Scene, { part, box }: BoxRef): number {
  const { boxes, line, isUpward } = parts[part]!;
  return isUpward ? line - levelOf(boxes, box) : line + levelOf(boxes, box);
}

/** The boxes around a box that are wider than those inside them, from the outermost, with the box itself. */
export function wayTo({ parts }: Scene, { part, box }: BoxRef): BoxRef[] {
  const { boxes: { around, width } } = parts[part]!;
  const way = [box];
  for (let at = around[box]!; at >= 0; at = around[at]!) if (width[at]! > width[way[0]!]!) way.unshift(at);
  return way.map((box) => ({ part, box }));
}

/** The box that an arrow key leads to. */
export function neighbor(scene: Scene, at: BoxRef | null, key: string): BoxRef | null {
  if (!at) return scene.parts.length ? { part: 0, box: 0 } : null;
  const { boxes, isUpward } = scene.parts[at.part]!, other = scene.parts[1 - at.part];
  const { around, starts } = boxes, { part, box } = at;
  if (key === "ArrowLeft" || key === "ArrowRight") {
    const next = box + (key === "ArrowRight" ? 1 : -1);
    return next >= 0 && next < around.length && !starts.includes(Math.max(box, next)) ? { part, box: next } : at;
  }
  const isInward = (key === "ArrowDown") !== isUpward;
  const inner = around.indexOf(box);
  if (isInward) return inner < 0 ? at : { part, box: inner };
  if (around[box]! >= 0) return isUpward && around[box] === 0 ? { part: 0, box: 0 } : { part, box: around[box]! };
  const outer = other && !isUpward ? other.boxes.around.indexOf(0) : -1;
  return outer < 0 ? at : { part: 1 - part, box: outer };
}

const SHOWN_ENDS = 2;

/** The label of a box: its function, or the first and the last of a chain. */
export function labelOf({ tree, boxes }: Part, box: number, nameOf: (row: number) => string): string {
  const [first, last, calls] = [boxes.node[box]!, boxes.last[box]!, boxes.calls[box]!];
  const name = (node: number) => layersName(nameOf(tree.row[node]!), tree.count?.[node] ?? 1);
  if (calls === 1) return name(first);
  return `${name(first)} › … ${plural(calls - SHOWN_ENDS, "call")} … › ${name(last)}`;
}
