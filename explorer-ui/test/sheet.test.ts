import assert from "node:assert/strict";
import { test } from "node:test";
import type { Door, Layer, Part } from "../src/door.ts";
import { type Excerpt, cells, whole } from "../src/excerpt.ts";
import { preview, sheet, takesLong } from "../src/sheet.ts";
import { layerOf, tileOf } from "./made.ts";

/** A door that notes what it was asked for. */
function door(layer: Layer): { asked: Part[]; named: Excerpt[]; door: Door } {
  const asked: Part[] = [];
  const named: Excerpt[] = [];
  const none = () => Promise.reject(new Error("nobody asks for this"));
  const tile: Door["tile"] = (_map, _layer, part) => {
    asked.push(part);
    const heads = part.head === null ? layer.heads : 1;
    const [rows, keys] = [cells(part.excerpt.rows), cells(part.excerpt.keys)];
    return Promise.resolve(tileOf([heads, rows, keys], []));
  };
  const tokens: Door["tokens"] = (_map, _layer, excerpt) => {
    named.push(excerpt);
    const tokens = (from: number, to: number) => Array.from({ length: to - from }, (_, i) => `t${from + i}`);
    const { rows, keys } = excerpt;
    return Promise.resolve({ rows: tokens(rows.from, rows.to), keys: tokens(keys.from, keys.to) });
  };
  return { asked, named, door: { model: none, translate: none, text: none, overview: none, statistics: none, image: none, tile, tokens } };
}

const layer = (size: number, heads = 2): Layer => layerOf(heads, size);
const ask = (layer: Layer, head: number | null, part = whole(layer)) => {
  const opened = door(layer);
  const came = sheet(opened.door, "m", { layer, index: 3, head }, part, new AbortController().signal);
  return came.then((sheet) => ({ sheet, ...opened }));
};

test("a small part comes with all heads and with its tokens", async () => {
  const part = { rows: { from: 2, to: 4 }, keys: { from: 0, to: 1 } };
  const { sheet, asked } = await ask(layer(9), 1, part);
  assert.deepEqual(asked, [{ excerpt: part, head: null }]);
  assert.deepEqual([sheet.layer, sheet.head, sheet.coarse], [3, null, false]);
  assert.deepEqual(sheet.rows.map((label) => label.text), ["t2", "t3"]);
  assert.deepEqual(sheet.keys.map((label) => label.text), ["t0"]);
});

test("a part that has to be pooled comes for one head, and its cells are places", async () => {
  const { sheet, asked, named } = await ask(layer(1_000), null);
  assert.deepEqual([asked[0]?.head, sheet.head, sheet.coarse], [0, 0, true]);
  assert.deepEqual(named, []);
  assert.deepEqual(sheet.rows.slice(0, 3).map((label) => label.text), ["0", "1–2", "3–4"]);
});

test("so many heads that their weights are millions come one by one", async () => {
  const { sheet } = await ask(layer(512, 64), null);
  assert.deepEqual([sheet.head, sheet.coarse], [0, false]);
  assert.equal(sheet.rows[511]?.text, "t511");
});

test("a head that this layer lacks becomes its last", async () => {
  assert.equal((await ask(layer(1_000, 2), 7)).sheet.head, 1);
});

test("while a long map is read, its head is shown as the overview has it", () => {
  const long = layer(100_000, 2);
  assert.deepEqual([takesLong(long, whole(long)), takesLong(layer(3_000), whole(layer(3_000)))], [true, false]);
  const near = { rows: { from: 0, to: 9 }, keys: { from: 0, to: 9 } };
  assert.equal(takesLong(long, near), false);
  const shown = preview(tileOf([2, 2, 2], [1, 2, 3, 4, 5, 6, 7, 8]), long, 4, 1);
  assert.deepEqual([shown.layer, shown.head, shown.coarse, shown.preview], [4, 1, true, true]);
  assert.deepEqual([...shown.tile.levels], [5, 6, 7, 8]);
  assert.deepEqual(shown.rows.map((label) => label.text), ["0–49999", "50000–99999"]);
  assert.deepEqual(shown.excerpt, whole(long));
});
