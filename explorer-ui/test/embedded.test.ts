import assert from "node:assert/strict";
import { test } from "node:test";
import { type Content, Embedded, cut, picture } from "../src/embedded.ts";
import { Problem } from "../src/problem.ts";
import { layerOf, tileOf } from "./made.ts";

const span = (from: number, to: number) => ({ from, to });

test("a part of a whole tile is cut out of it, of one head or of all", () => {
  const tile = tileOf([2, 3, 3], [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17]);
  const layer = layerOf(2, 3);
  const excerpt = { rows: span(1, 3), keys: span(0, 2) };
  assert.deepEqual([...cut(tile, layer, excerpt, 1).levels], [12, 13, 15, 16]);
  assert.deepEqual([...cut(tile, layer, excerpt, null).levels], [3, 4, 6, 7, 12, 13, 15, 16]);
  assert.equal(cut(tile, layer, excerpt, null).pyramidLevel, 0);
});

test("a cell of a long map is the largest weight of its group", () => {
  const size = 1024;
  const levels = Array.from({ length: size * size }, () => 1);
  levels[5 * size + 1023] = 200;
  const excerpt = { rows: span(0, size), keys: span(0, size) };
  const shown = cut(tileOf([1, size, size], levels), layerOf(1, size), excerpt, 0);
  assert.deepEqual([shown.rows, shown.keys, shown.pyramidLevel], [512, 512, 1]);
  assert.equal(shown.levels[2 * 512 + 511], 200);
});

test("a cell is hidden only where all of its weights are", () => {
  const hidden = 255;
  const levels = Array.from({ length: 128 * 128 }, (_, place) => (place === 1 ? 0 : hidden));
  const small = picture(tileOf([1, 128, 128], levels));
  assert.deepEqual([small.rows, small.keys], [64, 64]);
  assert.equal(small.levels[0], 0);
  assert.equal(small.levels[1], hidden);
});

test("where only a picture is held, places are those of its cells, and it is called coarse", () => {
  const tile = { ...tileOf([1, 2, 2], [1, 2, 3, 4]), pyramidLevel: 2 };
  const excerpt = { rows: span(3, 7), keys: span(4, 8) };
  const shown = cut(tile, layerOf(1, 8), excerpt, null);
  assert.deepEqual([...shown.levels], [2, 2, 2, 2, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4].slice(0, 4).concat(
    Array.from({ length: 12 }, () => 4),
  ));
  assert.equal(shown.pyramidLevel, 2);
});

test("what a file does not hold is a problem in words", async () => {
  const content = { version: 1, model: { facts: {}, texts: [] }, answers: [], names: [] };
  const door = new Embedded(content as Content);
  await assert.rejects(door.text(0), Problem);
  await assert.rejects(door.translate(), Problem);
  assert.throws(() => new Embedded({ ...content, version: 2 } as Content), Problem);
});

test("an image is that of the layer by which it is asked for", async () => {
  const answers = [{ layers: [], images: { 2: btoa("PNG") } }];
  const content = { version: 1, model: { facts: {}, texts: [""] }, answers, names: [] };
  const door = new Embedded(content as unknown as Content);
  assert.equal(new TextDecoder().decode(await door.image("0", 2)), "PNG");
  await assert.rejects(door.image("0", 1), Problem);
});
