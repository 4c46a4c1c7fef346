import assert from "node:assert/strict";
import { test } from "node:test";
import { type Colour, colour, ink, luminance, onDark, onLight } from "../src/ramp.ts";

/** CIE L* from relative luminance: lightness as it is seen, from 0 to 100. */
function lightness(paint: Colour): number {
  const light = luminance(paint);
  return light > 0.008856 ? 116 * Math.cbrt(light) - 16 : 903.3 * light;
}

function contrast(paint: Colour, other: string): number {
  const [a, b] = [luminance(paint), other === "#000" ? 0 : 1];
  return (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
}

for (const [name, ramp, sign] of [["light", onLight, -1], ["dark", onDark, 1]] as const) {
  test(`on ${name} paper, more weight is always ${sign < 0 ? "darker" : "brighter"}`, () => {
    const steps = Array.from({ length: 33 }, (_, i) => lightness(colour(ramp, i / 32)));
    steps.slice(1).forEach((step, i) => assert.ok(sign * (step - (steps[i] ?? 0)) > 0));
  });

  test(`on ${name} paper, equal differences of weight look about equally large`, () => {
    const steps = Array.from({ length: 9 }, (_, i) => lightness(colour(ramp, i / 8)));
    const gaps = steps.slice(1).map((step, i) => Math.abs(step - (steps[i] ?? 0)));
    const mean = gaps.reduce((sum, gap) => sum + gap, 0) / gaps.length;
    gaps.forEach((gap) => assert.ok(gap > 0.6 * mean && gap < 1.4 * mean, `${gaps}`));
  });

  test(`on ${name} paper, text can be read on every shade`, () => {
    ramp.steps.forEach((paint) => assert.ok(contrast(paint, ink(paint)) >= 4.5));
  });
}

test("a share outside of 0 to 1 gets the nearest end", () => {
  assert.equal(colour(onLight, -1), onLight.steps[0]);
  assert.equal(colour(onLight, 2), onLight.steps[255]);
});
