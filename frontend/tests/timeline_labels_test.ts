import { deepStrictEqual as same, strictEqual as is } from "node:assert/strict";
import type { LabelPage } from "../src/api/timeline_types.ts";
import { Labels, LABELS_PER_PAGE } from "../src/timeline/model/labels.ts";

const SIZE = 2 * LABELS_PER_PAGE + 1; // three pages

/** Labels that are answered by hand, and which pages were requested. */
function labelsByHand() {
  const pages: number[] = [], answers: ((page: LabelPage | null) => void)[] = [];
  const load = (page: number) => {
    pages.push(page);
    return new Promise<LabelPage | null>((resolve) => answers.push(resolve));
  };
  return { labels: new Labels(SIZE, load, () => {}), pages, answer: answers };
}

const page = (count: number): LabelPage => ({
  state: "ready",
  texts: Array(count).fill("aten::mm"),
  labels: {},
  categories: Array(count).fill(3),
});

const settled = () => new Promise((resolve) => setTimeout(resolve));

Deno.test("pages of labels come one after the other, each once, however often all of them are requested", async () => {
  const { labels, pages, answer } = labelsByHand();
  const all = Promise.all([labels.requestAll(), labels.requestAll()]);
  for (const [at, count] of [LABELS_PER_PAGE, LABELS_PER_PAGE, 1].entries()) {
    same(pages, [0, 1, 2].slice(0, at + 1));
    is(labels.isComplete, false);
    answer[at]!(page(count));
    await settled();
  }
  await all;
  same(pages, [0, 1, 2]);
  is(labels.isComplete, true);
  is(labels.categories.every((category) => category === 3), true);
});

Deno.test("a page of labels that failed is requested again", async () => {
  const { labels, pages, answer } = labelsByHand();
  is(labels.text(0), "");
  answer[0]!(null);
  await settled();
  is(labels.text(0), "");
  same(pages, [0, 0]);
  answer[1]!(page(LABELS_PER_PAGE));
  await settled();
  is(labels.text(0), "aten::mm");
});
