import type { ComponentChildren } from "preact";
import { useMemo } from "preact/hooks";
import type { Ready } from "../columns.ts";
import { sorted } from "../order.ts";
import { type Slot, useSlot } from "../slot.ts";
import { depthFor, inPreorder, pathTo, type Tree, unfolded, withKin } from "../tree.ts";
import type { Rows } from "./rows.ts";
import { DataTable } from "./table.tsx";
import type { Folding } from "./table_choice.ts";

const SHORT = 60; // rows that a tree shows before anything is unfolded or folded by hand

const turnedIn = (slot: Slot) => new Set(slot.get("turned").split(".").filter(Boolean).map(Number));

const depthIn = (slot: Slot, tree: Tree) => {
  const depth = slot.get("depth");
  return depth ? Number(depth) : depthFor(tree, SHORT);
};

function turn(slot: Slot, rows: number[]) {
  const turned = turnedIn(slot);
  for (const row of rows) if (!turned.delete(row)) turned.add(row);
  slot.go({ turned: [...turned].join(".") });
}

/** Selects a row, and unfolds what it lies in. */
export function revealRow(slot: Slot, tree: Tree, row: number) {
  const depth = depthIn(slot, tree);
  const turned = turnedIn(slot);
  // Where a filter is set, its matches decide what is unfolded; then the row may stay hidden.
  const folded = slot.get("filter") ? [] : pathTo(tree, row).filter((at) => tree.level[at]! < depth === turned.has(at));
  turn(slot, folded);
  slot.go({ row: String(row), open: "" });
}

/** How far the tree is unfolded. */
export function Depth({ tree }: { tree: Tree }) {
  const slot = useSlot();
  const deepest = tree.level.reduce((most, level) => Math.max(most, level), 0);
  const depth = Math.min(depthIn(slot, tree), deepest);
  const set = (value: number) => slot.go({ depth: String(value), turned: "", open: "" });
  return (
    <div class="segments" role="group" aria-label="Unfold">
      <span>Unfold</span>
      <div>
        <button type="button" disabled={depth <= 0} onClick={() => set(0)}>None</button>
        <button type="button" disabled={depth <= 0} onClick={() => set(depth - 1)} aria-label="One level less">
          −
        </button>
        <button type="button" disabled={depth >= deepest} onClick={() => set(depth + 1)} aria-label="One level more">
          +
        </button>
        <button type="button" disabled={depth >= deepest} onClick={() => set(deepest)}>All</button>
      </div>
    </div>
  );
}

interface TreeTableProps {
  ready: Ready;
  tree: Tree;
  rows: Rows;
  label: string;
  detail: (row: number) => ComponentChildren;
}

/** A table whose rows lie in each other; what a filter lets through is shown with what is around it. */
export function TreeTable({ ready, tree, rows, label, detail }: TreeTableProps) {
  const slot = useSlot();
  const preorder = useMemo(() => {
    const all = Uint32Array.from({ length: ready.count }, (_, row) => row);
    return inPreorder(
      tree,
      sorted(all, rows.keys.map(({ name, descending }) => ({ rank: ready.rank(name), descending }))),
    );
  }, [ready, tree, rows.keys]);
  const isFiltered = rows.rows.length < ready.count;
  const kin = useMemo(() => (isFiltered ? withKin(tree, rows.rows) : null), [tree, rows.rows, isFiltered]);
  const depth = depthIn(slot, tree);
  const turned = turnedIn(slot);
  const isOpen = (row: number) => (kin ? kin.around[row] === 1 : tree.level[row]! < depth) !== turned.has(row);
  const key = `${depth} ${slot.get("turned")}`;
  const shown = useMemo(() => unfolded(tree, preorder, kin?.kept ?? null, isOpen), [tree, preorder, kin, key]);
  const folding: Folding = {
    level: (row) => tree.level[row]!,
    isOpen: (row) => (tree.size[row] === 1 ? null : isOpen(row)),
    parent: (row) => tree.parent[row]!,
    turn: (row) => turn(slot, [row]),
  };
  return <DataTable ready={ready} rows={{ ...rows, rows: shown }} label={label} detail={detail} folding={folding} />;
}
