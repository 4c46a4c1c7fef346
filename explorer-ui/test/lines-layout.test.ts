import assert from "node:assert/strict";
import { test } from "node:test";
import { along, linesOf, middleOf, tokenAt } from "../src/lines-layout.ts";

test("a token is found at each of its pixels and nowhere else", () => {
  const words = along([10, 30, 5], 12, 4);
  assert.deepEqual(words.starts, [0, 16, 50]);
  assert.equal(words.total, 66);
  for (let place = 0; place < 66; place++) {
    const index = tokenAt(words, place);
    assert.equal(index, place < 16 ? 0 : place < 50 ? 1 : 2);
  }
  assert.equal(tokenAt(words, -1), null);
  assert.equal(tokenAt(words, 66), null);
  assert.equal(middleOf(words, 1), 33);
});

test("lines are the weights from the threshold on, the smallest first", () => {
  const head = { columns: 2, values: Float32Array.from([0.75, 0.25, NaN, 0.5]) };
  const { lines, left } = linesOf([head], 0.3, 10);
  assert.deepEqual(lines, [
    { row: 1, key: 1, weight: 0.5, head: 0 },
    { row: 0, key: 0, weight: 0.75, head: 0 },
  ]);
  assert.equal(left, 0);
  assert.equal(linesOf([head], 0, 1).left, 2);
  assert.equal(linesOf([head], 0, 1).lines[0]?.weight, 0.75);
});
