/** The drawer below the canvas: the selected slice, search results, the selected area, the longest gaps. */

import { h } from "preact";
import { effect, untracked } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import { address, go } from "../../app/router.ts";
import { decimal } from "../../format/numbers.ts";
import { AreaTable } from "./area_table.tsx";
import { Details } from "./details.tsx";
import { GapList } from "./gap_list.tsx";
import { ResultList } from "../search/result_list.tsx";
import { resultCount } from "../search/search_results.ts";
import { area, find, search, selection } from "../state/selection.ts";
import { useKeys } from "../../ui/keys.ts";

const TABS = [["slice", "Slice"], ["found", "Results"], ["area", "Area"], ["gaps", "Idle gaps"]] as const;
type Tab = typeof TABS[number][0];

const CLOSED = "closed";
const LOWEST = 90;
const DEFAULT_HEIGHT = 300;

/** The panel that is open: the one that was chosen, else the first that has something to show. */
export function openTab(): Tab | null {
  const { panel } = address.value;
  if (panel === CLOSED) return null;
  const chosen = TABS.find(([id]) => id === panel)?.[0];
  return chosen ?? (selection.value ? "slice" : area.value ? "area" : find.value ? "found" : null);
}

export const openPanel = (tab: Tab | null) => go({ panel: tab ?? CLOSED });

/** Opens the panel of the last selection; a selection from within the drawer leaves its panel open. */
function followChoices(isWithin: () => boolean): () => void {
  const of = { slice: selection, area, found: find };
  const ends = Object.entries(of).map(([tab, chosen]) => {
    let isFirst = true;
    return effect(() => {
      const isChosen = chosen.value !== null;
      untracked(() => {
        if (!isFirst && isChosen && address.value.panel !== CLOSED && !isWithin()) openPanel(tab as Tab);
        isFirst = false;
      });
    });
  });
  return () => ends.forEach((end) => end());
}

/** The edge at which the drawer is made higher or lower, with the pointer or with the arrow keys. */
function Edge({ height }: { height: number }) {
  const change = (next: number) =>
    go({ drawer: String(Math.round(Math.max(LOWEST, Math.min(next, innerHeight - 200)))) });
  const drag = (event: PointerEvent) => {
    const edge = event.currentTarget as HTMLElement;
    edge.setPointerCapture(event.pointerId);
    const from = event.clientY;
    edge.onpointermove = (moved) => change(height + from - moved.clientY);
    edge.onpointerup = edge.onpointercancel = () => (edge.onpointermove = null);
  };
  const byKey = (event: KeyboardEvent) => {
    const by = { ArrowUp: 20, ArrowDown: -20 }[event.key];
    if (!by) return;
    event.preventDefault();
    change(height + by);
  };
  return (
    <div
      class="edge"
      role="slider"
      tabIndex={0}
      aria-orientation="vertical"
      aria-label="Height of the drawer"
      aria-valuemin={LOWEST}
      aria-valuemax={Math.max(LOWEST, innerHeight - 200)}
      aria-valuenow={height}
      onPointerDown={drag}
      onKeyDown={byKey}
    />
  );
}

/** The count in a tab's title. */
function countOf(tab: Tab): string {
  return tab === "found" && search.value ? ` ${decimal(resultCount(search.value.answers))}` : "";
}

const PANELS = { slice: Details, found: ResultList, area: AreaTable, gaps: GapList };

function Tabs({ tab, toggle }: { tab: Tab | null; toggle: () => void }) {
  return (
    <div class="tabs" role="group" aria-label="Details of">
      {TABS.map(([id, title]) => (
        <button
          key={id}
          type="button"
          aria-pressed={id === tab}
          onClick={() => openPanel(id === tab ? null : id)}
        >
          {title + countOf(id)}
        </button>
      ))}
      <span class="space" />
      <button type="button" class="turn" aria-expanded={tab !== null} onClick={toggle} data-tip="Open or close this: Q">
        <span aria-hidden="true">{tab ? "▾" : "▴"}</span> {tab ? "Close" : "Open"}
      </button>
    </div>
  );
}

/** The drawer; Q opens and closes it. */
export function Drawer() {
  const box = useRef<HTMLElement>(null);
  const last = useRef<Tab>("slice");
  const tab = openTab();
  if (tab) last.current = tab;
  useEffect(() => followChoices(() => box.current?.contains(document.activeElement) ?? false), []);
  const toggle = () => openPanel(tab ? null : last.current);
  useKeys({ q: toggle, Q: toggle });
  const height = Math.max(LOWEST, Number(address.value.drawer) || DEFAULT_HEIGHT);
  const Panel = tab && PANELS[tab];
  return (
    <section class={`drawer ${tab ? "" : "closed"}`} aria-label="Details" ref={box}>
      {tab && <Edge height={height} />}
      <Tabs tab={tab} toggle={toggle} />
      {Panel && (
        <div
          class="panel"
          style={{ height: `${height}px` }}
          tabIndex={0}
          role="region"
          aria-label={TABS.find(([id]) => id === tab)![1]}
        >
          <Panel />
        </div>
      )}
    </section>
  );
}
