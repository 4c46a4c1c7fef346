import assert from "node:assert/strict";
import { test } from "node:test";
import { head } from "../src/matrix.ts";
import { SCALES, shading, ticks } from "../src/scale.ts";
import { tileOf } from "./made.ts";

// Two queries over four keys, in hundredths; the second looks evenly at two and may not at the others.
const matrix = head(tileOf([1, 2, 4], [64, 36, 0, 0, 25, 25, 255, 255], 0.01), 0);

test("each scale is the formula that it says", () => {
  const near = (given: number, wanted: number) => assert.ok(Math.abs(given - wanted) < 1e-5, `${given}`);
  near(shading("root", matrix, 4)(0.36, 0), 0.6);
  near(shading("absolute", matrix, 4)(0.36, 0), 0.36);
  near(shading("map", matrix, 4)(0.32, 1), 0.5);
  near(shading("row", matrix, 4)(0.25, 1), 1);
  near(shading("row", matrix, 4)(0.32, 0), 0.5);
  near(shading("uniform", matrix, 4)(0.25, 0), 0.25);
  near(shading("uniform", matrix, 64)(0.25, 0), 1);
});

test("a uniform map looks uniform and pale, but where the legend says that it is its own measure", () => {
  const uniform = head(tileOf([1, 8, 8], new Array<number>(64).fill(1), 1 / 8), 0);
  for (const scale of ["root", "absolute", "uniform"] as const) {
    const shade = shading(scale, uniform, 8);
    assert.ok(shade(1 / 8, 0) < 0.4, scale);
    assert.equal(shade(1 / 8, 0), shade(1 / 8, 7));
  }
  assert.match(ticks("map", 0.125).at(-1)?.text ?? "", /13 %, the largest here/);
  assert.match(ticks("row", 0.125).at(-1)?.text ?? "", /largest of its row/);
});

test("a row or a map of nothing is as pale as nothing", () => {
  const nothing = head(tileOf([1, 1, 2], [0, 255]), 0);
  for (const [scale] of SCALES) assert.equal(shading(scale, nothing, 2)(0, 0), 0);
});

test("the numbers of the legend stand where their colours are", () => {
  const shade = shading("root", matrix, 4);
  for (const { share, text } of ticks("root", 1)) {
    assert.ok(Math.abs(shade(Number.parseFloat(text) / 100, 0) - share) < 1e-6, text);
  }
  const times = shading("uniform", matrix, 100);
  for (const { share, text } of ticks("uniform", 1)) {
    assert.ok(Math.abs(times(Number.parseFloat(text) / 100, 0) - share) < 1e-6, text);
  }
});
