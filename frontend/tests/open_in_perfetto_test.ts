import { deepStrictEqual as same } from "node:assert/strict";
import { exportQuery, offlineAddress } from "../src/timeline/toolbar/open_in_perfetto.ts";

const source = (worker: string, shift_ns: number) => ({
  place: { run: "job", worker, span: `${worker}'s` },
  stamp: worker === "a" ? "cafe" : "beef",
  shift_ns,
});

Deno.test("a whole worker is requested by its name alone", () => {
  same(exportQuery([source("a", 0)], null, []), { run: "job", worker: "a", span: "a's", stamp: "cafe" });
});

Deno.test("a range is on the clock of the first worker, and the others are shifted against it", () => {
  const query = exportQuery([source("a", 100), source("b", -20)], { from: 150.6, to: 190.2 }, ["memory", "args"]);
  same(query, {
    run: "job",
    worker: "a",
    span: "a's",
    stamp: "cafe",
    from_ns: "50",
    to_ns: "91",
    workers: '[{"worker":"b","span":"b\'s","shift_ns":-120}]',
    include: "memory,args",
  });
});

Deno.test("the offline copy shows the range in the file's time, which begins with the worker that is earliest", () => {
  const address = offlineAddress("http://h/x?a=1&b=2", [source("a", 100), source("b", -20)], {
    from: 150.6,
    to: 190.2,
  });
  const [page, options] = address.split("#!/?") as [string, string];
  const { startupCommands, ...parameters } = Object.fromEntries(new URLSearchParams(options));
  same(page, "timeline/perfetto/index.html");
  same(parameters, {
    mode: "embedded",
    hideSidebar: "true",
    visStart: "170",
    visEnd: "211",
    url: "http://h/x?a=1&b=2",
  });
  same(JSON.parse(startupCommands!), [{ id: "dev.perfetto.ExpandTracksByRegex", args: ["."] }]);
});

Deno.test("of all of a recording no range is shown", () => {
  same(offlineAddress("u", [source("a", 0)], null).includes("vis"), false);
});
