import { deepStrictEqual as same, strictEqual as is } from "node:assert/strict";
import { labelPlaces, LONG, SHORT } from "../src/timeline/model/geometry.ts";
import {
  type Bookmark,
  bookmarksIn,
  bookmarksText,
  freeLetter,
  gapIn,
  gapToText,
  isSameArea,
  rangeOf,
} from "../src/timeline/model/url_codec.ts";

const mark = (letter: string, from: number, to: number, ...tracks: [string, number][]): Bookmark => ({
  letter,
  name: "",
  from,
  to,
  tracks: tracks.map(([source, track]) => ({ source, track })),
});

Deno.test("bookmarks survive the address, whatever workers are called", () => {
  const marks = [mark("A", 5, 90, ["rank0", 1], ["x~y.z, 50%", 2]), mark("C", -7, 8)];
  same(bookmarksIn(bookmarksText(marks, "rank0"), "rank0"), marks);
  is(bookmarksText([], "rank0"), "");
});

Deno.test("bookmarks have names of any letters", () => {
  const marks = ["warm-up", "a~b, c:d 50% é"].map((name, i) => ({ ...mark("AB"[i]!, 5, 90, ["rank0", 1]), name }));
  same(bookmarksIn(bookmarksText(marks, "rank0"), "rank0"), marks);
});

Deno.test("what is no mark is left out, and of one letter there is one mark", () => {
  const texts = ["A~5~90~", "A~1~2~", "B~9~5~", "C~0~Infinity~", "D~0~1e300~", "<img>~0~9~", "AB~0~9~", "E", "F~x~9~"];
  same(bookmarksIn(texts.map(encodeURIComponent).join(","), "rank0"), [mark("A", 5, 90)]);
  same(bookmarksIn("%", "rank0"), []);
  is(rangeOf("0", "Infinity"), null);
});

Deno.test("a new mark takes the first letter that is free", () => {
  is(freeLetter([]), "A");
  is(freeLetter([mark("A", 0, 1), mark("C", 0, 1)]), "B");
  is(freeLetter([..."ABCDEFGHIJKLMNOPQRSTUVWXYZ"].map((letter) => mark(letter, 0, 1))), null);
});

Deno.test("areas are the same if their times and tracks are, in any order", () => {
  const area = mark("A", 5, 90, ["rank0", 1], ["rank1", 2]);
  is(isSameArea(area, mark("B", 5, 90, ["rank1", 2], ["rank0", 1])), true);
  is(isSameArea(area, mark("A", 5, 91, ["rank0", 1], ["rank1", 2])), false);
  is(isSameArea(area, mark("A", 5, 90, ["rank0", 1])), false);
  is(isSameArea(area, mark("A", 5, 90)), false);
});

Deno.test("labels stand where their marks begin, and those out of sight have none", () => {
  const edges = [{ letter: "A", left: -50, right: 20 }, { letter: "B", left: 300, right: 400 }];
  same(labelPlaces(edges, 1000), [
    { letter: "A", left: 0, isShort: false },
    { letter: "B", left: 300, isShort: false },
  ]);
  same(labelPlaces([{ letter: "A", left: -50, right: -1 }, { letter: "B", left: 1001, right: 1002 }], 1000), []);
});

Deno.test("labels never lie over each other nor beyond the edge: they get shorter and give way", () => {
  const crowd = (...lefts: number[]) => lefts.map((left, i) => ({ letter: "ABCDEF"[i]!, left, right: left + 5 }));
  same(labelPlaces(crowd(10, 10 + SHORT), 1000).map(({ isShort }) => isShort), [true, false]);
  for (const width of [6 * (SHORT + 2), 500, 1000]) {
    for (const lefts of [[0, 0, 0, 0, 0, 0], [990, 991, 992, 993, 994, 995], [5, 100, 101, 400, 400, 499]]) {
      const places = labelPlaces(crowd(...lefts), width);
      const ends = places.map(({ left, isShort }) => left + (isShort ? SHORT : LONG));
      places.forEach(({ left }, i) => is(left >= (i ? ends[i - 1]! : 0), true));
      is((ends.at(-1) ?? 0) <= width, true);
    }
  }
});

Deno.test("a selected gap survives the address; what isn't one is none", () => {
  for (const source of ["rank0", "x~y.z, 50%"]) {
    const gap = { source, device: 3, start_ns: 340_000 };
    same(gapIn(gapToText(gap, "rank0"), "rank0"), gap);
  }
  is(gapToText({ source: "rank0", device: 0, start_ns: 5 }, "rank0"), "5~0");
  for (const text of ["", "5", "~0", "5~x", "-5~0"]) is(gapIn(text, "rank0"), null);
});
