import assert from "node:assert/strict";
import { test } from "node:test";
import type { Explained } from "../src/door.ts";
import { MODEL, PLACES, computed, factorAt, formula, isRoot, leftOut, placeAt, plain, products, question, times } from "../src/mechanism.ts";
import { layerOf, tileOf } from "./made.ts";

const found: Explained = {
  missing: "",
  notes: [],
  form: "scaled",
  scale: 0.5,
  softcap: null,
  width: 4,
  query: [1, -1, 2, 0],
  energy: null,
  keys: {
    index: [0, 1, 2],
    product: [4, 2, 6],
    bias: null,
    score: [2, 1, 3],
    hidden: ["", "", "causal"],
    weight: [0.7310586, 0.2689414, 0],
  },
  left: { seen: 0, log_sum: null, hidden: 0 },
  placed: null,
  shown: [0, 1, 2],
  vectors: [
    [1, 1, 2, 5],
    [0, 0, 1, 5],
    [2, 0, 2, 5],
  ],
  values: null,
  context: null,
  no_values: "a trace has none",
  positions: "",
  no_positions: "a trace has none",
};

const near = (one: number, other: number) => assert.ok(Math.abs(one - other) < 1e-6, `${one} is not ${other}`);
const weights = (...given: Parameters<typeof computed>) => computed(...given).lines.map(({ weight }) => weight);

test("at the model's scale the weights are those of the model", () => {
  weights(found, 1, true).forEach((weight, index) => near(weight, found.keys.weight[index] ?? 0));
  const { entropy, most, sum } = computed(found, 1, true);
  near(entropy, 0.5822031);
  near(most, Math.log(2));
  near(sum, Math.log(Math.exp(2) + Math.exp(1)));
});

test("a factor multiplies the scores before the softcap and the bias", () => {
  const capped = { ...found, softcap: 2, keys: { ...found.keys, bias: [0, 1, null], score: [0, 0, 0] } };
  const scores = computed(capped, 2, false).lines.map(({ score }) => score ?? NaN);
  [2 * Math.tanh(2), 2 * Math.tanh(1) + 1, 2 * Math.tanh(3)].forEach((score, index) => near(scores[index] ?? NaN, score));
});

test("without the mask every key takes part", () => {
  const total = Math.exp(2) + Math.exp(1) + Math.exp(3);
  weights(found, 1, false).forEach((weight, index) => near(weight, Math.exp(found.keys.score[index] ?? 0) / total));
  assert.equal(computed(found, 1, false).lines[2]!.hidden, "");
});

test("what was not sent counts in the sum at the model's scale", () => {
  const some = { ...found, left: { seen: 5, log_sum: 2, hidden: 0 } };
  near(weights(some, 1, true)[0]!, Math.exp(2) / (2 * Math.exp(2) + Math.exp(1)));
});

test("scores that a bias moves beyond all others leave even weights, not none", () => {
  const low = { ...found, keys: { ...found.keys, score: [-3.4e38, -3.4e38, -3.4e38], hidden: ["", "", ""] } };
  weights(low, 1, true).forEach((weight) => near(weight, 1 / 3));
});

test("keys without a line are counted, hidden ones apart", () => {
  const left = { seen: 5, log_sum: 2, hidden: 7 };
  assert.deepEqual(leftOut({ ...found, shown: [0], left }), { seen: 6, hidden: 8 });
  assert.deepEqual(leftOut(found), { seen: 0, hidden: 0 });
});

test("products are those of numbers, or v times tanh of the sums", () => {
  assert.deepEqual(products(found, [1, 1, 2, 5]), [1, -1, 4, 0]);
  const additive = { ...found, energy: [1, 2, 0, 1] };
  products(additive, [0, 1, 1, 1]).forEach((value, index) => near(value, [Math.tanh(1), 0, 0, Math.tanh(1)][index] ?? NaN));
});

test("the slider goes from 1/16 to 16 by way of the model's scale", () => {
  assert.deepEqual([0, MODEL, PLACES].map(factorAt), [1 / 16, 1, 16]);
  for (const place of [0, 13, 40, 77, 80]) assert.equal(placeAt(factorAt(place)), place);
  assert.equal(placeAt(1000), PLACES);
});

test("the formula is written with the numbers of the layer", () => {
  assert.equal(formula(found), "score = 0.5 × q · k");
  assert.equal(formula({ ...found, softcap: 30, keys: { ...found.keys, bias: [0, 0, 0] } }), "score = 30 × tanh(0.5 × q · k / 30) + bias");
  assert.equal(formula({ ...found, form: "additive", scale: 1 }), "score = v · tanh(W q + U k)");
  assert.ok(isRoot(0.5, 4) && isRoot(0.35355338, 8) && !isRoot(1, 8));
  assert.deepEqual([1.5, -0.031, -1234.5, -3.4e38, null].map(plain), ["1.50", "−0.031", "−1234.5", "−3.4e38", "–"]);
  assert.deepEqual([0.35355338, 2, 0.0625].map(times), ["0.354", "2", "0.0625"]);
});

const answer = { text: null, score: null, map: "m", blank: "", remarks: [], layers: [layerOf(2, 3, 4)] };
const excerpt = { rows: { from: 1, to: 3 }, keys: { from: 1, to: 4 } };
const sheet = { layer: 0, excerpt, tile: tileOf([2, 2, 3], new Array(12).fill(1)), head: null, coarse: false, preview: false, rows: [], keys: [] };
const here = { answer, sheet, layer: 0, head: 1, pinned: null, pointed: null, unplaced: false };

test("the row that is pinned is asked for, else the one that was pointed at; counted from the text's beginning", () => {
  assert.deepEqual(question(here), { layer: 0, head: 1, row: 1, key: null });
  const pointed = { side: "target", index: 1, partner: 2 } as const;
  assert.deepEqual(question({ ...here, pointed }), { layer: 0, head: 1, row: 2, key: null });
  assert.deepEqual(question({ ...here, pinned: pointed }), { layer: 0, head: 1, row: 2, key: 3 });
  const column = { side: "source", index: 0, partner: 1 } as const;
  assert.deepEqual(question({ ...here, pinned: column }), { layer: 0, head: 1, row: 2, key: 1 });
});

test("positions are left out where the reader says so", () => {
  assert.deepEqual(question({ ...here, unplaced: true }), { layer: 0, head: 1, row: 1, key: null, unplaced: true });
});

test("nothing is asked of the mean of several heads, or of a map without words", () => {
  assert.equal(question({ ...here, head: null }), null);
  assert.equal(question({ ...here, answer: { ...answer, layers: [layerOf(1, 3, 4)] }, head: null })!.head, 0);
  assert.equal(question({ ...here, sheet: { ...sheet, coarse: true } }), null);
});
