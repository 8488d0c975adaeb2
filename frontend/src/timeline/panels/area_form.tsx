/** How the selected area is shown: its slices by group, as a flame graph, or the counters. The address holds it. */

import { Fragment, h } from "preact";
import { computed } from "@preact/signals";
import { address, go } from "../../app/router.ts";
import { Menu } from "../../ui/choice.tsx";
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
        <Menu
          title="by"
          label="Group by"
          value={areaGroup.value}
          options={GROUPS.map((by) => [by, by])}
          onPick={(by) => go({ area_by: by === GROUPS[0] ? "" : by })}
        />
      )}
    </>
  );
}
