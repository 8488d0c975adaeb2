import { deepStrictEqual as same, ok, strictEqual as is } from "node:assert/strict";
import { boxAt, lanesAt, nearestBox, nearestEdge } from "../src/timeline/draw/hit_test.ts";
import type { Band } from "../src/timeline/model/layout.ts";
import { paint, type Target } from "../src/timeline/draw/raster.ts";
import { levelFor, piecesFor, type Tile, tilesIn } from "../src/timeline/model/tiles.ts";

/** A box: x, width, slice, label, count, busy. */
type Box = [number, number, number, number, number, number];

/** A batch as the server writes it: tiles of lanes of boxes. */
function batch(...tiles: Box[][][]): ArrayBuffer {
  const encoded = tiles.map((lanes) => {
    const boxes = lanes.flat(), offsets = [0];
    for (const lane of lanes) offsets.push(offsets.at(-1)! + lane.length);
    const columns = [0, 1, 2, 3, 4, 5].map((column) => boxes.map((box) => box[column]! >>> 0));
    return [lanes.length, boxes.length, ...offsets, ...columns.flat()];
  });
  const head = [encoded.length, ...encoded.map((words) => 4 * words.length)];
  return Uint32Array.from([...head, ...encoded.flat()]).buffer as ArrayBuffer;
}

const tile = (...lanes: Box[][]): Tile => tilesIn(batch(lanes))[0]!;
const piece = (of: Tile, level = 3, begin = 0) => ({
  tile: of,
  level,
  begin,
  from: begin,
  to: begin + 2 ** (level + 9),
});

Deno.test("a batch is read tile by tile, with what begins before a tile below zero", () => {
  const [first, second] = tilesIn(batch([[[-5, 9, 7, 1, 1, 9]], []], [[[1, 2, 3, 4, 5, 6]]]));
  is(first!.rows, 2);
  same([...first!.offsets], [0, 1, 1]);
  same([first!.x[0], first!.width[0], first!.slice[0], first!.label[0]], [-5, 9, 7, 1]);
  same([second!.rows, second!.x[0], second!.count[0], second!.busy[0]], [1, 1, 5, 6]);
  same(tilesIn(batch()), []);
});

Deno.test("buckets are one to two pixels wide", () => {
  for (const nsPerPixel of [9, 100, 12345, 9e9]) {
    const bucket = 2 ** levelFor(nsPerPixel);
    ok(bucket > nsPerPixel && bucket <= 2 * nsPerPixel);
  }
  is(levelFor(0.01), 3);
});

Deno.test("the finest coarser tile stands in for one that is missing, once", () => {
  const fine = tile([]), coarse = tile([]);
  const lookup = (level: number, index: number) =>
    level === 3 && index === 1 ? fine : level === 5 && index === 0 ? coarse : undefined;
  const drawn = piecesFor(lookup, 3, 0, 4 * 4096);
  same(drawn.map(({ level, from, to }) => [level, from, to]), [[5, 0, 4096], [3, 4096, 8192], [5, 8192, 16384]]);
  ok(drawn[0]!.tile === coarse && drawn[1]!.tile === fine);
  same(piecesFor(() => undefined, 3, 0, 9999), []);
});

Deno.test("a box is hit where it is, near it, and in the deepest lane of a shared row", () => {
  const pieces = [piece(tile([[10, 100, 0, 0, 1, 100]], [[20, 5, 1, 0, 1, 5]]))];
  is(nearestBox(pieces, 0, 50, 1)!.slice, 0);
  is(nearestBox(pieces, 0, 112, 1)!.slice, 0);
  is(nearestBox(pieces, 0, 200, 1), null);
  const mini = { lanes: 2, rows: 1, rowHeight: 12 } as Band;
  same(lanesAt(mini, 5), [1, 0]);
  same(lanesAt(mini, 13), []);
  is(boxAt(mini, pieces, 5, 22, 0.1)!.slice, 1);
  is(boxAt(mini, pieces, 5, 60, 0.1)!.slice, 0);
});

Deno.test("a time snaps to the nearest edge within reach, else it stays", () => {
  const pieces = [piece(tile([[10, 100, 0, 0, 1, 100]], [[20, 5, 1, 0, 1, 5]]))];
  same(nearestEdge(pieces, [0], 12, 5), { time: 10, slice: 0, isEnd: false });
  same(nearestEdge(pieces, [0], 108, 5), { time: 110, slice: 0, isEnd: true });
  same(nearestEdge(pieces, [0], 60, 5), { time: 60, slice: null, isEnd: false });
  same(nearestEdge(pieces, [0, 1], 23, 5), { time: 25, slice: 1, isEnd: true });
});

function painted(lanes: Box[][], nsPerPixel = 1, rows = lanes.length) {
  const width = 40, height = 10 * rows, backdrop = new Uint32Array(width).fill(1);
  const pixels = new Uint32Array(width * height).fill(1);
  const target: Target = { pixels, width, height, backdrop, from: 0, nsPerPixel };
  const colors = Uint32Array.from([100, 101, 102]);
  const names: number[][] = [];
  const shape = { lanes: lanes.length, rows, top: 0, rowHeight: 10, gap: 1, colors, isOver: false };
  const record = (left: number, right: number, _: number, label: number) => names.push([left, right, label]);
  const boxes = paint(target, { ...shape, pieces: [piece(tile(...lanes))] }, record, 8);
  return { boxes, names, at: (x: number, y: number) => pixels[y * width + x] };
}

Deno.test("a box is as wide as its slice but for a gap at its end, and as high as its lane but for one below", () => {
  const { at, boxes, names } = painted([[[4, 10, 0, 2, 1, 10]]]);
  same([3, 4, 12, 13, 14].map((x) => at(x, 0)), [1, 102, 102, 1, 1]);
  same([at(4, 8), at(4, 9)], [102, 1]);
  is(boxes, 1);
  same(names, [[4, 14, 2]]);
});

Deno.test("where many slices share a pixel a bar is as high as they are busy, and never too low to be seen", () => {
  const { at } = painted([[[0, 1, 0, 1, 3, 4], [16, 0, 3, 1, 2, 0]]], 8);
  const high = (x: number) => [0, 1, 2, 3, 4, 5, 6, 7, 8].filter((y) => at(x, y) === 101).length;
  is(high(0), 5); // half of 9
  is(high(2), 3);
  is(high(1), 0);
});

Deno.test("lanes that share a row lie over each other, the deepest on top", () => {
  const { at } = painted([[[0, 20, 0, 0, 1, 20]], [[5, 5, 1, 1, 1, 5]]], 1, 1);
  same([at(2, 0), at(6, 0), at(12, 0)], [100, 101, 100]);
});
