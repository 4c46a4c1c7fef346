import assert from "node:assert/strict";
import { test } from "node:test";
import { at, column, cut, descending, head, hidden, largest, mean, row, top } from "../src/matrix.ts";
import { tileOf } from "./made.ts";

// Two heads of two queries over three keys; one level is a tenth.
const tile = tileOf([2, 2, 3], [10, 0, 0, 2, 3, 5, 0, 10, 0, 4, 3, 3], 0.1);

function near(given: readonly number[], wanted: readonly number[]): void {
  assert.equal(given.length, wanted.length);
  given.forEach((value, i) => assert.ok(Math.abs(value - (wanted[i] ?? NaN)) < 1e-6, `${given}`));
}

test("a head is its levels times the scale", () => {
  near(row(head(tile, 1), 0), [0, 1, 0]);
  near(row(head(tile, 1), 1), [0.4, 0.3, 0.3]);
});

test("the mean of the heads is a distribution again", () => {
  near(row(mean(tile), 0), [0.5, 0.5, 0]);
  near(row(mean(tile), 1), [0.3, 0.3, 0.4]);
});

test("where no query may look is told apart from nothing, and counts as nothing", () => {
  const masked = head(tileOf([1, 1, 3], [0, 254, 255]), 0);
  assert.deepEqual([0, 1, 2].map((column) => hidden(masked, 0, column)), [false, false, true]);
  near([at(masked, 0, 2), largest(masked)], [0, 254]);
});

test("the mean leaves out heads that may not look, and is hidden where none may", () => {
  const both = mean(tileOf([2, 1, 3], [10, 255, 255, 20, 30, 255]));
  near([at(both, 0, 0), at(both, 0, 1)], [15, 15]);
  assert.deepEqual([0, 1, 2].map((column) => hidden(both, 0, column)), [false, false, true]);
});

test("a weight by the root of its level is the square of it", () => {
  const rooted = { ...tileOf([1, 1, 2], [127, 254]), power: 2, scales: Float32Array.of(0.8) };
  near(row(head(rooted, 0), 0), [0.2, 0.8]);
});

test("a column holds what each query gave to one key", () => {
  near(column(head(tile, 0), 2), [0, 0.5]);
});

test("the largest weight is found, and is 0 in an empty map", () => {
  near([largest(head(tile, 0))], [1]);
  assert.equal(largest({ rows: 0, columns: 3, values: new Float32Array() }), 0);
});

test("numbers are ordered from the largest, equals as they came", () => {
  assert.deepEqual(descending([0.2, 0.5, 0.2, 0.1]), [1, 0, 2, 3]);
});

test("the largest few are the first of all in order", () => {
  const numbers = [0.2, 0.5, 0.2, 0.1, 0.5, 0];
  for (const count of [1, 3, 6, 9]) {
    assert.deepEqual(top(numbers, count), descending(numbers).slice(0, count));
  }
  assert.deepEqual(top([], 3), []);
});

test("a part of a matrix is its rows and columns there", () => {
  const values = Float32Array.from([0, 1, 2, 3, 4, 5, 6, 7, 8]);
  const part = cut({ rows: 3, columns: 3, values }, { from: 1, to: 3 }, { from: 0, to: 2 });
  assert.deepEqual([part.rows, part.columns, ...part.values], [2, 2, 3, 4, 6, 7]);
});
