import assert from "node:assert/strict";
import { test } from "node:test";
import { difference, headNumbers, interpretation, interpretationOfWhole, places, sinkRule, sinks } from "../src/insight.ts";
import type { Matrix } from "../src/matrix.ts";

const matrix = (rows: number[][]): Matrix => ({
  rows: rows.length,
  columns: rows[0]?.length ?? 0,
  values: Float32Array.from(rows.flat()),
});
const near = (found: number, expected: number) => assert.ok(Math.abs(found - expected) < 1e-6, `${found}`);

test("an even head has all the entropy that there can be, a head of one key none", () => {
  near(headNumbers(matrix([[0.25, 0.25, 0.25, 0.25]]), null).normalized_entropy, 1);
  near(headNumbers(matrix([[0, 1, 0, 0]]), null).normalized_entropy, 0);
});

test("the share on the token before is that below the diagonal, the distance its mean", () => {
  const numbers = headNumbers(matrix([[1, 0, 0], [0.9, 0.1, 0], [0, 0.8, 0.2]]), 0);
  near(numbers.previous_weight, (0 + 0.9 + 0.8) / 3);
  near(numbers.self_weight, (1 + 0.1 + 0.2) / 3);
  near(numbers.distance, (0 + 0.9 + 0.8) / 3);
  near(numbers.first_weight, (1 + 0.9 + 0) / 3);
});

test("two texts have neither a distance nor a token before", () => {
  const numbers = headNumbers(matrix([[0.5, 0.5]]), null);
  assert.ok(Number.isNaN(numbers.distance) && Number.isNaN(numbers.previous_weight));
});

test("what is set aside counts nowhere, and what remains of a row adds up to one", () => {
  const numbers = headNumbers(matrix([[0.6, 0.3, 0.1], [0.8, 0.1, 0.1]]), null, new Set([0]));
  near(numbers.max_weight, (0.75 + 0.5) / 2);
  near(numbers.left, (0.4 + 0.2) / 2);
  near(numbers.first_weight, (0.75 + 0.5) / 2);
});

test("a query that may look at nothing counts for nothing", () => {
  const numbers = headNumbers(matrix([[NaN, NaN], [0.5, 0.5]]), null);
  assert.equal(numbers.queries, 1);
  near(numbers.normalized_entropy, 1);
});

test("a key with a quarter of all attention is a sink, keys of an even head are none", () => {
  const rows = Array.from({ length: 4 }, () => [0.7, ...Array.from({ length: 19 }, () => 0.3 / 19)]);
  assert.deepEqual(sinks(matrix(rows)), [0]);
  assert.deepEqual(sinks(matrix([[0.5, 0.5], [0.5, 0.5]])), []);
});

test("what a key receives is the sum of its column", () => {
  const { received, entropy } = places(matrix([[0.5, 0.5], [1, 0]]));
  near(received[0] ?? NaN, 1.5);
  near(entropy[0] ?? NaN, 1);
  near(entropy[1] ?? NaN, 0);
});

test("the difference of two heads is that of their weights, and half its size has to move", () => {
  const found = difference(matrix([[1, 0], [0.5, 0.5]]), matrix([[0, 1], [0.5, 0.5]]));
  near(found.moved, 0.5);
  assert.deepEqual([...found.matrix.values], [1, -1, 0, 0]);
  near(difference(matrix([[1, 0]]), matrix([[1, 0]])).correlation, 1);
  near(difference(matrix([[1, 0]]), matrix([[0, 1]])).correlation, -1);
});

test("a head of the token before is called so", () => {
  const numbers = headNumbers(matrix([[1, 0, 0], [1, 0, 0], [0, 1, 0]]), 0);
  const text = interpretation(numbers, "Head 3", false).join(" ");
  assert.match(text, /^Head 3 is sharp/);
  assert.match(text, /the token before: 67 % of its attention|the first token: 67 % of its attention/);
});

test("the rule of a sink in words is the one by which sinks are found", () => {
  for (const keys of [2, 5, 8, 15, 16, 17, 100]) {
    const said = /^Of (\d+) keys a sink is one with (\d+) % of all attention or more\.$/.exec(sinkRule(keys));
    assert.equal(Number(said?.[1]), keys);
    const least = Number(said?.[2]) / 100;
    // All the rest goes to another key, a sink itself or not.
    const withShare = (share: number) => matrix([[1 - share, share, ...Array.from({ length: keys - 2 }, () => 0)]]);
    assert.ok(sinks(withShare(Math.min(least + 0.006, 1))).includes(1), `${keys} keys`);
    assert.ok(!sinks(withShare(least - 0.006)).includes(1), `${keys} keys`);
  }
});

test("of a part of a map, what is said comes from the numbers of all of it", () => {
  const layers = [{ normalized_entropy: [0.9, 0.1], max_weight: [0.2, 0.9], previous_weight: [0.1, 0.8] }];
  const statistics = { names: [], layers, first: { layer: 0, head: 0 }, sampled: false };
  const part = "A part of the map is in view; numbers here are of all of it.";
  assert.deepEqual(interpretationOfWhole(1, statistics, 0, true), [
    "Head 1 is sharp: its largest weight is 90 % on average, its entropy 10 % of the most.",
    "It looks mostly at the token before: 80 % of its attention.",
    part,
  ]);
  assert.deepEqual(interpretationOfWhole(null, statistics, 0, true), [part]);
  const some = interpretationOfWhole(0, { ...statistics, sampled: true }, 0, false);
  assert.equal(some.at(-1), "The map is too long to be read here; numbers here are of a sample of its queries.");
});
