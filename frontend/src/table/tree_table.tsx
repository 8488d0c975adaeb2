import { type ComponentChildren, h } from "preact";
import { useMemo } from "preact/hooks";
import type { DrawnColumn, Ready } from "./columns.ts";
import { printSort, type Rows, sortRows } from "./order.ts";
import { type TableScope, useTableScope } from "./table_scope.tsx";
import { depthFor, inPreorder, pathTo, type Tree, unfolded, withRelatives } from "./tree.ts";
import { DataTable } from "./table.tsx";
import { finish } from "./time_slices.ts";
import type { Folding } from "./table_selection.ts";

const SHORT = 60; // rows that a tree shows before anything is unfolded or folded by hand

const toggledIn = (scope: TableScope) => new Set(scope.get("turned").split(".").filter(Boolean).map(Number));

const depthIn = (scope: TableScope, tree: Tree) => {
  const depth = scope.get("depth");
  return depth ? Number(depth) : depthFor(tree, SHORT);
};

function toggle(scope: TableScope, rows: number[]) {
  const toggled = toggledIn(scope);
  for (const row of rows) if (!toggled.delete(row)) toggled.add(row);
  scope.go({ turned: [...toggled].join(".") });
}

/** Selects a row, and unfolds its ancestors. */
export function revealRow(scope: TableScope, tree: Tree, row: number) {
  const depth = depthIn(scope, tree);
  const toggled = toggledIn(scope);
  // Where a filter is set, its matches decide what is unfolded; then the row may stay hidden.
  const folded = scope.get("filter")
    ? []
    : pathTo(tree, row).filter((at) => tree.level[at]! < depth === toggled.has(at));
  toggle(scope, folded);
  scope.go({ row: String(row), open: "" });
}

/** The depth to which the tree is unfolded. */
export function Depth({ tree }: { tree: Tree }) {
  const scope = useTableScope();
  const deepest = tree.level.reduce((most, level) => Math.max(most, level), 0);
  const depth = Math.min(depthIn(scope, tree), deepest);
  const set = (value: number) => scope.go({ depth: String(value), turned: "", open: "" });
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
  detail: (row: number, inSight: DrawnColumn[]) => ComponentChildren;
}

/** A tree table; rows that match a filter are shown with their ancestors. */
export function TreeTable({ ready, tree, rows, label, detail }: TreeTableProps) {
  const scope = useTableScope();
  const preorder = useMemo(() => {
    const keys = rows.keys.map(({ name, descending }) => ({ rank: ready.ranks.of(name), descending }));
    return inPreorder(tree, finish(sortRows(tree.outermostFirst, keys)));
  }, [ready, tree, printSort(rows.keys)]);
  const isFiltered = rows.rows.length < ready.count;
  const relatives = useMemo(() => (isFiltered ? withRelatives(tree, rows.rows) : null), [tree, rows.rows, isFiltered]);
  const depth = depthIn(scope, tree);
  const toggled = toggledIn(scope);
  const isOpen = (row: number) =>
    (relatives ? relatives.around[row] === 1 : tree.level[row]! < depth) !== toggled.has(row);
  const key = `${depth} ${scope.get("turned")}`;
  const shown = useMemo(() => unfolded(tree, preorder, relatives?.included ?? null, isOpen), [
    tree,
    preorder,
    relatives,
    key,
  ]);
  const folding: Folding = {
    level: (row) => tree.level[row]!,
    isOpen: (row) => (tree.size[row] === 1 ? null : isOpen(row)),
    parent: (row) => tree.parent[row]!,
    toggle: (row) => toggle(scope, [row]),
  };
  return <DataTable ready={ready} rows={{ ...rows, rows: shown }} label={label} detail={detail} folding={folding} />;
}
