import assert from "node:assert/strict";
import { test } from "node:test";
import type { Layer } from "../src/door.ts";
import * as excerpt from "../src/excerpt.ts";
import type { Excerpt, Span } from "../src/excerpt.ts";
import { layerOf } from "./made.ts";

const layer = (queries: number, keys: number): Layer => layerOf(1, queries, keys);
const span = (from: number, to: number): Span => ({ from, to });

test("the cells of an axis follow one another and leave no place out", () => {
  for (const [from, to] of [[0, 512], [0, 513], [7, 1_000], [3, 131_072]] as const) {
    const all = Array.from({ length: excerpt.cells(span(from, to)) }, (_, i) =>
      excerpt.group(span(from, to), i),
    );
    assert.equal(all[0]?.from, from);
    assert.equal(all.at(-1)?.to, to);
    all.slice(1).forEach((group, i) => assert.equal(group.from, all[i]?.to));
    const sizes = all.map(excerpt.length);
    assert.ok(Math.max(...sizes) - Math.min(...sizes) <= 1);
  }
});

test("a part of up to 512 places is shown as it is", () => {
  assert.equal(excerpt.coarse(excerpt.whole(layer(512, 512))), false);
  assert.equal(excerpt.coarse(excerpt.whole(layer(512, 513))), true);
  assert.equal(excerpt.coarse(excerpt.whole(layer(513, 1))), true);
});

test("farther ends at the whole map", () => {
  const map = layer(1_000, 100);
  const part: Excerpt = { rows: span(990, 1_000), keys: span(0, 5) };
  const once = excerpt.farther(part, map);
  assert.deepEqual(once, { rows: span(920, 1_000), keys: span(0, 40) });
  assert.deepEqual(excerpt.farther(excerpt.farther(once, map), map), excerpt.whole(map));
});

test("what is asked for has the part in view, and is exact where the part can be", () => {
  const map = layer(3_000, 2_000);
  for (const part of [
    { rows: span(0, 3), keys: span(1_990, 2_000) },
    { rows: span(700, 1_200), keys: span(0, 512) },
    excerpt.whole(map),
  ]) {
    const asked = excerpt.around(part, map);
    assert.ok(excerpt.contains(asked, part));
    assert.equal(excerpt.coarse(asked), excerpt.coarse(part));
    assert.ok(excerpt.contains(excerpt.whole(map), asked));
  }
  assert.deepEqual(excerpt.around({ rows: span(0, 1), keys: span(0, 1) }, layer(512, 9)), excerpt.whole(layer(512, 9)));
});

test("a part of a link is shown where the layer has it", () => {
  const part: Excerpt = { rows: span(1, 2), keys: span(0, 3) };
  assert.equal(excerpt.fitted(part, layer(2, 3)), part);
  assert.deepEqual(excerpt.fitted(part, layer(2, 2)), excerpt.whole(layer(2, 2)));
  assert.deepEqual(excerpt.fitted(null, layer(2, 2)), excerpt.whole(layer(2, 2)));
});

test("another layer shows the same part where it has as many places, else all of it", () => {
  const part: Excerpt = { rows: span(1, 2), keys: span(0, 3) };
  assert.equal(excerpt.carried(part, layer(4, 4), layer(4, 4)), part);
  assert.deepEqual(excerpt.carried(part, layer(4, 4), layer(4, 5)), excerpt.whole(layer(4, 5)));
  assert.deepEqual(excerpt.carried(null, null, layer(4, 5)), excerpt.whole(layer(4, 5)));
});
