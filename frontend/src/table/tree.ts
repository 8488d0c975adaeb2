/** Trees of rows: which are shown, in which order, and where each lies in a flame graph. */

import { byBins } from "./order.ts";

export interface Tree {
  /** The parent of each row, or -1. */
  parent: Int32Array;
  /** The depth of each row. */
  level: Uint16Array;
  /** The size of each row's subtree, itself included. */
  size: Uint32Array;
  /** All rows, the outermost first. */
  outermostFirst: Uint32Array;
}

const NONE = -1;
const DEEPEST = 0xffff; // level of 16 bits

/** The rows' tree. A row without a parent, or on a cycle, is a root. */
export function treeOf(parents: readonly unknown[]): Tree {
  const count = parents.length;
  const parent = Int32Array.from(parents, (value) => {
    const row = typeof value === "number" ? value : NONE;
    return row >= 0 && row < count ? row : NONE;
  });
  const level = new Uint16Array(count);
  const state = new Uint8Array(count); // 1: on the way up, 2: done
  const path: number[] = [];
  for (let row = 0; row < count; row++) {
    for (let at = row; at !== NONE && state[at] !== 2; at = parent[at]!) {
      if (state[at] === 1) {
        parent[path.at(-1)!] = NONE;
        break;
      }
      state[at] = 1;
      path.push(at);
    }
    for (let at = path.pop(); at !== undefined; at = path.pop()) {
      level[at] = parent[at] === NONE ? 0 : level[parent[at]!]! + 1;
      state[at] = 2;
    }
  }
  const size = new Uint32Array(count).fill(1), outermostFirst = byBins(size.map((_, row) => row), level, DEEPEST);
  for (const row of outermostFirst.toReversed()) if (parent[row] !== NONE) size[parent[row]!]! += size[row]!;
  return { parent, level, size, outermostFirst };
}

/** All rows in preorder; siblings in the order of `order`. */
export function inPreorder({ parent, level, size }: Tree, order: Uint32Array): Uint32Array {
  const free = new Uint32Array(parent.length);
  const result = new Uint32Array(order.length);
  let next = 0;
  for (const row of byBins(order, level, DEEPEST)) { // siblings keep their order
    const above = parent[row]!;
    const place = above === NONE ? next : free[above]!;
    if (above === NONE) next += size[row]!;
    else free[above] = place + size[row]!;
    free[row] = place + 1;
    result[place] = row;
  }
  return result;
}

/** The rows that match a filter, their ancestors, and their descendants. */
export function withRelatives(
  { parent, outermostFirst }: Tree,
  matches: Uint32Array,
): { included: Uint8Array; around: Uint8Array } {
  const included = new Uint8Array(parent.length);
  const around = new Uint8Array(parent.length);
  for (const row of matches) {
    included[row] = 1;
    for (let at = parent[row]!; at !== NONE && !around[at]; at = parent[at]!) around[at] = 1;
  }
  const inside = included.slice();
  for (const row of outermostFirst) if (parent[row] !== NONE && inside[parent[row]!]) inside[row] = 1;
  for (let row = 0; row < included.length; row++) included[row] = inside[row] || around[row] ? 1 : 0;
  return { included, around };
}

/** The rows of `preorder` that are included and in no folded row. */
export function unfolded(
  { size }: Tree,
  preorder: Uint32Array,
  included: Uint8Array | null,
  isOpen: (row: number) => boolean,
): Uint32Array {
  const shown = new Uint32Array(preorder.length);
  let count = 0;
  for (let place = 0; place < preorder.length;) {
    const row = preorder[place]!;
    const isIncluded = !included || included[row];
    if (isIncluded) shown[count++] = row;
    place += isIncluded && isOpen(row) ? 1 : size[row]!;
  }
  return shown.subarray(0, count);
}

/** The deepest level to which everything can be unfolded with at most `most` rows shown. */
export function depthFor({ level }: Tree, most: number): number {
  const counts: number[] = [];
  for (const at of level) counts[at] = (counts[at] ?? 0) + 1;
  let shown = counts[0] ?? 0;
  let depth = 0;
  while (depth + 1 < counts.length && shown + counts[depth + 1]! <= most) shown += counts[++depth]!;
  return depth;
}

/** The ancestors of a row, from the outermost. */
export function pathTo({ parent }: Tree, row: number): number[] {
  const path = [];
  for (let at = parent[row]!; at !== undefined && at !== NONE; at = parent[at]!) path.unshift(at);
  return path;
}

/** The rows with no ancestor among the others. */
export function outermost({ parent }: Tree, rows: Uint32Array): Uint32Array {
  const among = new Uint8Array(parent.length);
  for (const row of rows) among[row] = 1;
  return rows.filter((row) => {
    let at = parent[row]!;
    while (at !== NONE && !among[at]) at = parent[at]!;
    return at === NONE;
  });
}
