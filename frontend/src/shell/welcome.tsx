import { h } from "preact";
import { CaptureButton } from "./capture.tsx";
import { Notice } from "../ui/status.tsx";

const RECORDING = `from kinetoscope import Tracer, cyclic

with Tracer("runs", schedule=cyclic(wait=10, warmup=2, active=3)) as tracer:
    for batch in tracer.steps(loader):
        train(batch)`;

/** What an empty logdir shows: how to fill it. */
export const Welcome = ({ problems }: { problems: number }) => (
  <Notice title="No traces here yet">
    <p>
      Record a few steps of a training into this logdir; they appear here without a reload.
      {problems > 0 && " Files that look like traces but can't be used are listed on the left."}
    </p>
    <pre>{RECORDING}</pre>
    <p>
      A running training with an open Tracer can record on request: <CaptureButton />
    </p>
    <p class="quiet">
      Traces written by torch.profiler's tensorboard_trace_handler or export_chrome_trace open too (*.pt.trace.json,
      also gzipped).
    </p>
  </Notice>
);
