import assert from "node:assert/strict";
import { test } from "node:test";
import type { Layer } from "../src/door.ts";
import { whole } from "../src/excerpt.ts";
import { patched } from "../src/image.ts";
import { layerOf } from "./made.ts";

/** A place before the patches of a grid of 2 × 2, and one behind them. */
const layer: Layer = { ...layerOf(1, 6), image: { grid: [2, 2], first: 1, of: 0 } };
const matrix = { rows: 6, columns: 6, values: Float32Array.from({ length: 36 }, (_, index) => index) };

test("a place that looks has the weights of its row on the patches", () => {
  const found = patched(layer, whole(layer), matrix, { side: "target", index: 2, partner: 4 });
  assert.deepEqual(found, { weights: [13, 14, 15, 16], first: 1, both: true, own: 1, across: 3 });
});

test("a place that is looked at has those of its column", () => {
  const found = patched(layer, whole(layer), matrix, { side: "source", index: 4 });
  assert.deepEqual(found?.weights, [10, 16, 22, 28]);
  assert.equal(found.own, 3);
  assert.ok(Number.isNaN(found.across));
});

test("of a part of a map only the patches in view have weights", () => {
  const excerpt = { rows: { from: 3, to: 5 }, keys: { from: 2, to: 4 } };
  const part = { rows: 2, columns: 2, values: Float32Array.of(0.1, NaN, 0.3, 0.4) };
  const row = patched(layer, excerpt, part, { side: "target", index: 0 });
  assert.deepEqual([row?.weights[0], row?.weights[2], row?.weights[3]], [undefined, NaN, undefined]);
  assert.deepEqual([row?.first, row?.own], [-1, 2]);
  const column = patched(layer, excerpt, part, { side: "source", index: 1 });
  assert.deepEqual(column?.weights.map((weight) => weight === undefined), [true, true, false, false]);
  assert.deepEqual([column?.first, column?.own], [-2, 2]);
});

test("where other places look at patches, a patch has no weights towards them", () => {
  const across: Layer = { ...layer, within: false, queries: 3 };
  const part = { rows: 3, columns: 6, values: new Float32Array(18) };
  const row = patched(across, whole(across), part, { side: "target", index: 2 });
  assert.deepEqual(row?.weights, [0, 0, 0, 0]);
  assert.ok(Number.isNaN(row.own));
  const column = patched(across, whole(across), part, { side: "source", index: 1 });
  assert.deepEqual(column?.weights, [undefined, undefined, undefined, undefined]);
  assert.equal(column?.own, 0);
  assert.equal(patched(layerOf(1, 6), whole(layer), matrix, { side: "target", index: 0 }), null);
});
