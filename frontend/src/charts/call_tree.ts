/** Trees of calls for flame graphs, and what one function's callers and callees cost (the sandwich view). */

import type { Tree } from "../table/tree.ts";

const NONE = -1;

export interface CallTree {
  /** The caller of each node, or -1. */
  parent: Int32Array;
  /** The number of each node's function. */
  name: Int32Array;
  /** A row of the table with that function. */
  row: Int32Array;
  /** The time of each node, its callees included. */
  value: Float64Array;
  /** How many nodes each one stands for, if equal ones are merged. */
  count?: Int32Array;
}

/** The rows of a table as calls; rows with the same text in `nameOf` are the same function. */
export function callTreeOf(
  { parent }: Tree,
  nameOf: (row: number) => string,
  values: readonly (number | null)[],
): CallTree {
  const numbers = new Map<string, number>();
  const name = Int32Array.from(parent, (_, row) => {
    const text = nameOf(row);
    if (!numbers.has(text)) numbers.set(text, numbers.size);
    return numbers.get(text)!;
  });
  const value = Float64Array.from(parent, (_, row) => Math.max(0, values[row] ?? 0));
  return { parent, name, row: Int32Array.from(parent, (_, row) => row), value };
}

export interface FunctionTime {
  name: number;
  row: number;
  /** Without callees. */
  self: number;
  /** With callees; each instant counts once, however often the function is on the stack. */
  total: number;
}

/** The nodes whose function isn't also one of their callers. */
export function outermostCalls({ parent, name }: CallTree, preorder: Uint32Array): Uint8Array {
  const isOutermost = new Uint8Array(parent.length);
  const active = new Uint32Array(parent.length); // how often each function is on the stack
  const stack: number[] = [];
  for (const node of preorder) {
    while (stack.length && stack.at(-1) !== parent[node]) active[name[stack.pop()!]!]!--;
    isOutermost[node] = Number(active[name[node]!] === 0);
    active[name[node]!]!++;
    stack.push(node);
  }
  return isOutermost;
}

/** All functions, the one with the most time of its own first. */
export function functionTimes(tree: CallTree, preorder: Uint32Array): FunctionTime[] {
  const isOutermost = outermostCalls(tree, preorder);
  const times = new Map<number, FunctionTime>();
  const timesOf = (node: number) => {
    const name = tree.name[node]!;
    if (!times.has(name)) times.set(name, { name, row: tree.row[node]!, self: 0, total: 0 });
    return times.get(name)!;
  };
  for (const node of preorder) {
    const value = tree.value[node]!, parent = tree.parent[node]!;
    const entry = timesOf(node);
    entry.self += value;
    if (isOutermost[node]) entry.total += value;
    if (parent !== NONE) timesOf(parent).self -= value;
  }
  return [...times.values()].sort((a, b) => b.self - a.self || b.total - a.total || a.row - b.row);
}

/** Merges paths into a tree; a node comes after its parent. */
class Merger {
  private readonly nodes = new Map<string, number>();
  private readonly parent: number[] = [];
  private readonly name: number[] = [];
  private readonly row: number[] = [];
  private readonly value: number[] = [];
  private readonly count: number[] = [];

  constructor(private readonly source: CallTree) {}

  /** Adds a value to the node of the same function in a parent. */
  add(parent: number, of: number, value: number): number {
    const name = this.source.name[of]!, key = `${parent} ${name}`;
    let node = this.nodes.get(key);
    if (node === undefined) {
      this.nodes.set(key, node = this.parent.length);
      this.parent.push(parent);
      this.name.push(name);
      this.row.push(this.source.row[of]!);
      this.value.push(0);
      this.count.push(0);
    }
    this.value[node]! += value;
    this.count[node]!++;
    return node;
  }

  get tree(): CallTree {
    const { parent, name, row, value } = this;
    return {
      parent: Int32Array.from(parent),
      name: Int32Array.from(name),
      row: Int32Array.from(row),
      value: Float64Array.from(value),
    };
  }

  get counts(): Int32Array {
    return Int32Array.from(this.count);
  }
}

/** The number that torch gives a module within its class. */
const NUMBER = /_\d+$/;

/** The same with modules of one class that have the same place merged: `Block_0` to `Block_11` are `Block`, 12 of them. */
export function withEqualLayersMerged(
  tree: CallTree,
  preorder: Uint32Array,
  nameOf: (row: number) => string,
): CallTree {
  const classes = new Map<string, number>();
  const name = tree.row.map((row) => {
    const text = nameOf(row).replace(NUMBER, "");
    return classes.get(text) ?? (classes.set(text, classes.size), classes.size - 1);
  });
  const layers = new Merger({ ...tree, name });
  const merged = new Int32Array(tree.parent.length).fill(NONE);
  for (const node of preorder) {
    const parent = tree.parent[node]!;
    merged[node] = layers.add(parent === NONE ? NONE : merged[parent]!, node, tree.value[node]!);
  }
  return { ...layers.tree, count: layers.counts };
}

/** The name of a module's class, and how many of them a node stands for. */
export const layersName = (name: string, count: number): string =>
  count > 1 ? `${count} × ${name.replace(NUMBER, "")}` : name;

/** The callees of a function: what its outermost calls have inside. Node 0 is the function with its total. */
export function calleesOf(tree: CallTree, preorder: Uint32Array, name: number): CallTree {
  const isOutermost = outermostCalls(tree, preorder);
  const callees = new Merger(tree);
  const merged = new Int32Array(tree.parent.length).fill(NONE);
  for (const node of preorder) {
    const parent = tree.parent[node]!;
    const inside = parent === NONE ? NONE : merged[parent]!;
    const isStart = tree.name[node] === name && isOutermost[node] === 1;
    if (inside !== NONE || isStart) merged[node] = callees.add(inside, node, tree.value[node]!);
  }
  return callees.tree;
}

/** The callers of a function, turned around: the parent of a node is what it calls. Node 0 is the function. */
export function callersOf(tree: CallTree, preorder: Uint32Array, name: number): CallTree {
  const isOutermost = outermostCalls(tree, preorder);
  const callers = new Merger(tree);
  for (const node of preorder) {
    if (tree.name[node] !== name || !isOutermost[node]) continue;
    let called = NONE;
    for (let at = node; at !== NONE; at = tree.parent[at]!) called = callers.add(called, at, tree.value[node]!);
  }
  return callers.tree;
}
