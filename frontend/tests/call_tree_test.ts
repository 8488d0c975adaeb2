import { deepStrictEqual as same, strictEqual as is } from "node:assert/strict";
import {
  calleesOf,
  callersOf,
  type CallTree,
  callTreeOf,
  functionTimes,
  layersName,
  withEqualLayersMerged,
} from "../src/charts/call_tree.ts";
import { type Boxes, lastBefore, layOut, levelOf } from "../src/charts/flame_layout.ts";
import { inPreorder, treeOf } from "../src/table/tree.ts";

interface Made {
  tree: CallTree;
  preorder: Uint32Array;
  /** Every path from a root, with the time that belongs to its last call alone. */
  stacks: { names: number[]; self: number }[];
}

/** A tree in which each call has a time of its own and the sum of its callees; few names, so much recursion. */
function made(parents: (number | null)[], names: string, self: number[]): Made {
  const table = treeOf(parents);
  const values = self.slice();
  for (let row = parents.length - 1; row >= 0; row--) {
    const parent = parents[row];
    if (parent !== null && parent !== undefined) values[parent]! += values[row]!;
  }
  const tree = callTreeOf(table, (row) => names[row]!, values);
  const preorder = inPreorder(table, Uint32Array.from(parents, (_, row) => row));
  const pathTo = (row: number): number[] => [
    ...(parents[row] === null ? [] : pathTo(parents[row]!)),
    tree.name[row]!,
  ];
  return { tree, preorder, stacks: self.map((time, row) => ({ names: pathTo(row), self: time })) };
}

/** Numbers that look random and are the same each time (a linear congruential generator). */
function numbers(seed: number): (below: number) => number {
  let state = seed;
  return (below) => (state = (Math.imul(state, 1664525) + 1013904223) >>> 0) % below;
}

function generated(seed: number): Made {
  const random = numbers(seed);
  const count = 1 + random(60);
  const parents = Array.from({ length: count }, (_, row) => (row === 0 || random(12) === 0 ? null : random(row)));
  const names = Array.from({ length: count }, () => "abcde"[random(5)]!).join("");
  return made(parents, names, Array.from({ length: count }, () => random(1000)));
}

const SEEDS = Array.from({ length: 300 }, (_, seed) => seed);
const sum = (values: Iterable<number>) => [...values].reduce((total, value) => total + value, 0);

Deno.test("a function's total counts each instant once, and self times add up to the whole", () => {
  for (const seed of SEEDS) {
    const { tree, preorder, stacks } = generated(seed);
    const times = functionTimes(tree, preorder);
    for (const { name, self, total } of times) {
      is(total, sum(stacks.filter(({ names }) => names.includes(name)).map(({ self }) => self)));
      is(self, sum(stacks.filter(({ names }) => names.at(-1) === name).map(({ self }) => self)));
    }
    is(sum(times.map(({ self }) => self)), sum(stacks.map(({ self }) => self)));
  }
});

/** The time of each path of a tree, from its roots. */
function timesByPath({ parent, name, value }: CallTree): Map<string, number> {
  const paths: string[] = [];
  const times = new Map<string, number>();
  parent.forEach((above, node) => {
    paths.push(above < 0 ? `${name[node]}` : `${paths[above]} ${name[node]}`);
    times.set(paths[node]!, (times.get(paths[node]!) ?? 0) + value[node]!);
  });
  return times;
}

/** The same from all stacks: the paths from the function's outermost call, downward or upward. */
function expectedPaths(stacks: Made["stacks"], name: number, isDown: boolean): Map<string, number> {
  const times = new Map<string, number>();
  for (const { names, self } of stacks) {
    const at = names.indexOf(name);
    if (at < 0) continue;
    const path = isDown ? names.slice(at) : names.slice(0, at + 1).reverse();
    path.forEach((_, i) => {
      const key = path.slice(0, i + 1).join(" ");
      times.set(key, (times.get(key) ?? 0) + self);
    });
  }
  return times;
}

Deno.test("callers and callees of a function have exactly the time of the stacks that they are in", () => {
  for (const seed of SEEDS) {
    const { tree, preorder, stacks } = generated(seed);
    for (const { name, total } of functionTimes(tree, preorder)) {
      const callees = calleesOf(tree, preorder, name), callers = callersOf(tree, preorder, name);
      same(timesByPath(callees), expectedPaths(stacks, name, true));
      same(timesByPath(callers), expectedPaths(stacks, name, false));
      is(callees.value[0], total);
      is(callers.value[0], total);
    }
  }
});

const calls = ({ calls }: Boxes) => sum(calls);
const rootsOf = ({ parent }: CallTree) => [...parent.keys()].filter((node) => parent[node] === -1);

Deno.test("modules of one class in one place are one box with the sum of their times", () => {
  const names = ["Model_0", "Block_0", "Linear_0", "Linear_1", "Block_1", "Linear_2", "Linear_3", "Head_0"];
  const table = treeOf([null, 0, 1, 1, 0, 4, 4, 0]);
  const tree = callTreeOf(table, (row) => names[row]!, [100, 40, 10, 20, 50, 15, 25, 5]);
  const preorder = inPreorder(table, Uint32Array.from(names.keys()));
  const merged = withEqualLayersMerged(tree, preorder, (row) => names[row]!);
  const shown = Array.from(
    merged.row,
    (row, node) => [layersName(names[row]!, merged.count![node]!), merged.value[node]],
  );
  same(shown, [["Model_0", 100], ["2 × Block", 90], ["4 × Linear", 70], ["Head_0", 5]]);
  same([...merged.parent], [-1, 0, 1, 0]);
});

Deno.test("boxes lie in the box around them, side by side, and none is left out", () => {
  for (const seed of SEEDS) {
    const { tree } = generated(seed);
    const everything = new Set(tree.parent.keys());
    for (const isByTime of [false, true]) {
      const boxes = layOut(tree, rootsOf(tree), isByTime, everything);
      is(calls(boxes), tree.value.filter((value) => value > 0).length);
      for (let box = 0; box < boxes.node.length; box++) {
        is(boxes.width[box], tree.value[boxes.node[box]!]);
        const around = boxes.around[box]!;
        if (around < 0) continue;
        is(levelOf(boxes, box), levelOf(boxes, around) + 1);
        is(boxes.left[box]! >= boxes.left[around]!, true);
        is(boxes.left[box]! + boxes.width[box]! <= boxes.left[around]! + boxes.width[around]!, true);
      }
      for (let level = 0; level + 1 < boxes.starts.length; level++) {
        for (let box = boxes.starts[level]! + 1; box < boxes.starts[level + 1]!; box++) {
          is(boxes.left[box]! >= boxes.left[box - 1]! + boxes.width[box - 1]!, true);
          is(lastBefore(boxes, level, boxes.left[box]! + boxes.width[box]! / 2), box);
        }
      }
    }
  }
});

Deno.test("a chain that is one box hides at most 1 % of its time", () => {
  for (const seed of SEEDS) {
    const { tree } = generated(seed);
    const boxes = layOut(tree, rootsOf(tree), true, new Set());
    boxes.node.forEach((node, box) => {
      is(tree.value[boxes.last[box]!]! >= 0.99 * tree.value[node]!, true);
      is(boxes.calls[box] === 1 || boxes.calls[box]! >= 3, true);
    });
  }
});

//  main ─ a ─ b ─ c ─ d (100 of 1000 ns)
//                   └ e (900)
const CHAIN = made([null, 0, 1, 2, 3, 3], "mabcde", [0, 0, 0, 0, 100, 900]).tree;

Deno.test("calls with one callee are one box until it is opened", () => {
  const closed = layOut(CHAIN, [0], true, new Set());
  same([closed.node, closed.last, closed.calls], [[0, 1, 5, 4], [0, 3, 5, 4], [1, 3, 1, 1]]);
  same(closed.starts, [0, 1, 2, 4]);
  const open = layOut(CHAIN, [0], true, new Set([1]));
  same(open.node, [0, 1, 2, 3, 5, 4]);
});

Deno.test("by time the longest call comes first, else calls keep their order", () => {
  same(layOut(CHAIN, [0], false, new Set()).node, [0, 1, 4, 5]);
  const roots = made([null, null, null], "abc", [10, 30, 20]).tree;
  same([true, false].map((isByTime) => layOut(roots, [0, 1, 2], isByTime, new Set()).node), [[1, 2, 0], [0, 1, 2]]);
});
