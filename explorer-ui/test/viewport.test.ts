import assert from "node:assert/strict";
import { test } from "node:test";
import type { Span } from "../src/excerpt.ts";
import { CLOSEST, fit, panned, pixelOf, placeAt, roundPlaces, touched, zoomed } from "../src/viewport.ts";
import { layerOf } from "./made.ts";

const near = (given: number, wanted: number) => assert.ok(Math.abs(given - wanted) < 1e-6, `${given} ≠ ${wanted}`);
const SIZE = 500;

test("what is under the pointer stays there while one comes closer", () => {
  let span: Span = { from: 0, to: 131_072 };
  for (const factor of [1.3, 8, 2, 5, 0.5, 3]) {
    const before = pixelOf(span, 40_000.5, SIZE);
    span = zoomed(span, before / SIZE, factor, 131_072, SIZE);
    near(pixelOf(span, 40_000.5, SIZE), before);
  }
});

test("no zoom and no pan leaves the map, and none comes closer than a cell that is read", () => {
  for (const most of [1, 3, 40, 3_000]) {
    let span: Span = { from: 0, to: most };
    for (let step = 0; step < 200; step++) {
      span = step % 3 === 0 ? panned(span, (step % 7) * 100 - 300, most, SIZE) : zoomed(span, (step % 5) / 4, 1.4 - (step % 4) * 0.1, most, SIZE);
      assert.ok(span.from >= 0 && span.to <= most + 1e-9 && span.to > span.from);
    }
    const closest = zoomed(span, 0.5, 1e9, most, SIZE);
    near(closest.to - closest.from, Math.min(most, SIZE / CLOSEST));
    assert.deepEqual(zoomed(span, 0.5, 1e-9, most, SIZE), { from: 0, to: most });
  }
});

test("a pan moves what is seen by as many pixels", () => {
  const span: Span = { from: 100, to: 200 };
  near(pixelOf(panned(span, 50, 1_000, SIZE), 150, SIZE), pixelOf(span, 150, SIZE) - 50);
});

test("a place is found under each of its pixels", () => {
  const span: Span = { from: 3.25, to: 20.5 };
  for (let place = 4; place < 20; place++) {
    for (const inside of [0.01, 0.5, 0.99]) {
      assert.equal(placeAt(span, pixelOf(span, place + inside, SIZE), SIZE), place);
    }
  }
  assert.equal(placeAt({ from: 0, to: 4 }, SIZE, SIZE), 3);
});

test("the places that a part touches are whole", () => {
  const part = { rows: { from: 0.2, to: 2.01 }, keys: { from: 3, to: 4 } };
  assert.deepEqual(touched(part), { rows: { from: 0, to: 3 }, keys: { from: 3, to: 4 } });
});

test("ticks are round, in view, and apart", () => {
  for (const [from, to] of [[0, 131_072], [17.3, 518], [0, 9], [99_990, 100_003]] as const) {
    const places = roundPlaces({ from, to }, SIZE, 56);
    assert.ok(places.length > 0 && places.every((place) => place >= from && place < to));
    const step = (places[1] ?? Infinity) - (places[0] ?? 0);
    if (places.length < 2) continue;
    assert.match(String(step), /^(1|2|5)0*$/);
    assert.ok((step / (to - from)) * SIZE >= 56);
    places.forEach((place) => assert.equal(place % step, 0));
  }
});

test("a map fills its room; cells are square, but where an axis is far longer than the other", () => {
  assert.deepEqual(fit(layerOf(1, 4, 5), { width: 600, height: 500 }), { width: 190, height: 152 });
  assert.deepEqual(fit(layerOf(1, 512, 512), { width: 600, height: 512 }), { width: 512, height: 512 });
  const strip = fit(layerOf(1, 5, 100_000), { width: 600, height: 500 });
  assert.deepEqual([strip.width, strip.height], [600, 190]);
});
