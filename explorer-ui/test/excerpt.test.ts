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

test("closer and closer, from a hundred thousand places to single weights", () => {
  let part: Excerpt = excerpt.whole(layer(131_072, 131_072));
  let steps = 0;
  for (; excerpt.coarse(part); steps++) {
    const before = part;
    const cells = [excerpt.cells(part.rows), excerpt.cells(part.keys)] as const;
    const [row, key] = [Math.floor(cells[0] / 3), cells[1] - 1];
    const [rows, keys] = [excerpt.group(part.rows, row), excerpt.group(part.keys, key)];
    part = excerpt.closer(part, row, key);
    for (const [now, then, cell] of [
      [part.rows, before.rows, rows],
      [part.keys, before.keys, keys],
    ] as const) {
      assert.ok(now.from >= then.from && now.to <= then.to);
      assert.ok(now.from <= cell.from && now.to >= cell.to, "what was clicked stays in view");
      assert.ok(excerpt.length(now) < excerpt.length(then));
    }
  }
  assert.equal(steps, 3);
});

test("a side with few places stays whole while one comes closer", () => {
  const part = excerpt.closer(excerpt.whole(layer(20, 5_000)), 3, 100);
  assert.deepEqual(part.rows, span(0, 20));
  assert.equal(excerpt.length(part.keys), 625);
});

test("farther ends at the whole map", () => {
  const map = layer(1_000, 100);
  const part: Excerpt = { rows: span(990, 1_000), keys: span(0, 5) };
  const once = excerpt.farther(part, map);
  assert.deepEqual(once, { rows: span(920, 1_000), keys: span(0, 40) });
  assert.deepEqual(excerpt.farther(excerpt.farther(once, map), map), excerpt.whole(map));
});

test("a frame drawn in any direction is the part between its corners", () => {
  const whole = excerpt.whole(layer(1_024, 5));
  assert.deepEqual(excerpt.between(whole, [3, 1], [4, 2]), { rows: span(2, 8), keys: span(2, 5) });
});

test("another layer shows the same part where it has as many places, else all of it", () => {
  const part: Excerpt = { rows: span(1, 2), keys: span(0, 3) };
  assert.equal(excerpt.carried(part, layer(4, 4), layer(4, 4)), part);
  assert.deepEqual(excerpt.carried(part, layer(4, 4), layer(4, 5)), excerpt.whole(layer(4, 5)));
  assert.deepEqual(excerpt.carried(null, null, layer(4, 5)), excerpt.whole(layer(4, 5)));
});
