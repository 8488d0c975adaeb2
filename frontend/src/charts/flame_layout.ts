/** Where each call lies in a flame graph: boxes in boxes, as wide as their time. */

import type { CallTree } from "./call_tree.ts";

const NONE = -1;
const CHAIN_SHARE = 0.99; // of the first call's time: with less in one callee, a chain ends
const SHORTEST_CHAIN = 3;

/** Boxes level by level, each level from the left. */
export interface Boxes {
  /** The first and the last call of each box; they differ in a chain that is one box. */
  node: number[];
  last: number[];
  /** How many calls it stands for. */
  calls: number[];
  /** The box around it, or -1. */
  around: number[];
  left: number[];
  width: number[];
  /** The first box of each level, and the number of all boxes. */
  starts: number[];
}

/** The callees of each node, in order; or by time, the longest first. */
function calleesByNode({ parent, value }: CallTree, isByTime: boolean): (node: number) => Int32Array {
  const starts = new Int32Array(parent.length + 1);
  for (const at of parent) if (at !== NONE) starts[at + 1]!++;
  for (let node = 0; node < parent.length; node++) starts[node + 1]! += starts[node]!;
  const callees = new Int32Array(starts[parent.length]!);
  const free = starts.slice();
  parent.forEach((at, node) => {
    if (at !== NONE) callees[free[at]!++] = node;
  });
  const of = (node: number) => callees.subarray(starts[node]!, starts[node + 1]!);
  if (isByTime) parent.forEach((_, node) => of(node).sort((a, b) => value[b]! - value[a]! || a - b));
  return of;
}

/**
 * Lays out calls.
 *
 * A chain of calls in which each spends at least 99 % of the first one's time in the next is one box, unless `open`
 * has its first call.
 */
export function layOut(tree: CallTree, roots: number[], isByTime: boolean, open: ReadonlySet<number>): Boxes {
  const { value } = tree;
  const calleesOf = calleesByNode(tree, isByTime);
  const boxes: Boxes = { node: [], last: [], calls: [], around: [], left: [], width: [], starts: [0] };
  const isSingle = new Uint8Array(value.length); // calls of chains that are open
  const chainFrom = (node: number): number[] => {
    const chain = [node];
    for (let next: number | undefined = node; next !== undefined;) {
      next = calleesOf(next).find((callee) => value[callee]! >= CHAIN_SHARE * value[node]!);
      if (next !== undefined) chain.push(next);
    }
    return chain;
  };
  const add = (node: number, around: number, left: number, width: number, chain: number[]) => {
    boxes.node.push(node);
    boxes.last.push(chain.at(-1)!);
    boxes.calls.push(chain.length);
    boxes.around.push(around);
    boxes.left.push(left);
    boxes.width.push(width);
  };
  const boxOf = (node: number): number[] => {
    if (isSingle[node]) return [node];
    const chain = chainFrom(node);
    if (chain.length < SHORTEST_CHAIN) return [node];
    if (!open.has(node)) return chain;
    for (const at of chain) isSingle[at] = 1;
    return [node];
  };
  const ordered = isByTime ? roots.toSorted((a, b) => value[b]! - value[a]! || a - b) : roots;
  let left = 0;
  for (const root of ordered) {
    if (value[root]! > 0) add(root, NONE, left, value[root]!, [root]);
    left += value[root]!;
  }
  for (let box = 0; box < boxes.node.length; box++) {
    if (box === boxes.starts.at(-1)) boxes.starts.push(boxes.node.length);
    const end = boxes.left[box]! + boxes.width[box]!;
    let at = boxes.left[box]!;
    for (const callee of calleesOf(boxes.last[box]!)) {
      const width = Math.min(value[callee]!, end - at);
      if (width > 0) add(callee, box, at, width, boxOf(callee));
      at += width;
    }
  }
  if (boxes.starts.at(-1) !== boxes.node.length) boxes.starts.push(boxes.node.length);
  return boxes;
}

/** The last box of a level that begins at or before an instant; -1 if there is none. */
export function lastBefore({ left, starts }: Boxes, level: number, at: number): number {
  let [low, high] = [starts[level]!, starts[level + 1]!];
  const first = low;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (left[middle]! <= at) low = middle + 1;
    else high = middle;
  }
  return low > first ? low - 1 : NONE;
}

/** The level of a box. */
export const levelOf = ({ starts }: Boxes, box: number): number => starts.findIndex((start) => start > box) - 1;
