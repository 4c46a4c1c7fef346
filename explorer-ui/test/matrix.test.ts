import assert from "node:assert/strict";
import { test } from "node:test";
import { column, descending, head, largest, mean, row, top } from "../src/matrix.ts";
import type { Tile } from "../src/tile.ts";

// Two heads of two queries over three slots; one level is a tenth.
const tile: Tile = {
  heads: 2,
  rows: 2,
  slots: 3,
  scale: 0.1,
  levels: Uint8Array.of(10, 0, 0, 2, 3, 5, 0, 10, 0, 4, 3, 3),
};

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

test("a column holds what each query gave to one slot", () => {
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
