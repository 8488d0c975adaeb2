/** How the selected area is shown: its slices by group, as a flame graph, or the counters. The address holds it. */

import { Fragment, h } from "preact";
import { computed } from "@preact/signals";
import { address, go } from "../../app/router.ts";
import { Segments } from "../../ui/segments.tsx";

const FORMS = [["", "Pivot"], ["flame", "Flame graph"], ["counters", "Counters"]] as const;
const GROUPS = ["name", "category", "thread", "operator", "module", "annotation"];

export const areaForm = computed(() => FORMS.find(([form]) => form === address.value.area_form)?.[0] ?? "");

/** What the pivot groups by. */
export const areaGroup = computed(() => GROUPS.find((by) => by === address.value.area_by) ?? "name");

export function AreaForms() {
  return (
    <>
      <Segments label="Form" options={FORMS} value={areaForm.value} pick={(area_form) => go({ area_form })} />
      {!areaForm.value && (
        <label>
          by{" "}
          <select
            aria-label="Group by"
            value={areaGroup.value}
            onChange={({ currentTarget: { value } }) => go({ area_by: value === GROUPS[0] ? "" : value })}
          >
            {GROUPS.map((by) => <option key={by} value={by}>{by}</option>)}
          </select>
        </label>
      )}
    </>
  );
}
