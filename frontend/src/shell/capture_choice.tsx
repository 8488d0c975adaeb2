import { h } from "preact";
import { useRef } from "preact/hooks";
import type { TraceState } from "../api/types.ts";
import { address, go } from "../app/router.ts";
import { Selector } from "./selector.tsx";

/** Which recording says what the graphs of the trace, or of the base, launch, where there is a choice. */
export function CaptureChoice({ of, state }: { of: "capture" | "base_capture"; state: TraceState | null }) {
  const captures = useRef<string[]>([]); // until those of another trace are known
  if (state?.state === "ready") captures.current = state.captures;
  const chosen = address.value[of] ?? "";
  return captures.current[0] || chosen
    ? (
      <Selector
        title={of === "capture" ? "Graph capture" : "Base Graph capture"}
        value={chosen}
        options={["", "none", ...captures.current].map((name) => [name, name || "automatic"])}
        onPick={(name) => go({ [of]: name }, "push")}
      />
    )
    : null;
}
