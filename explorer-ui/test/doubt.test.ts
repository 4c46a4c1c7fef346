import assert from "node:assert/strict";
import { test } from "node:test";
import type { Answer, Effects } from "../src/door.ts";
import { adversaryKey, found, lines, plain, question, signed } from "../src/doubt.ts";
import { layerOf, tileOf } from "./made.ts";

const answer: Answer = {
  text: "x y z",
  score: null,
  map: "m",
  blank: "",
  remarks: [],
  layers: [layerOf(2, 3, 4, "cross"), layerOf(2, 4, 4, "encoder")],
  doubt: { source: ["a", "b", "c", "d"], outputs: ["x", "y", "z"], first: 1, rows: [true, false], keys: [true, true] },
};
const excerpt = { rows: { from: 1, to: 3 }, keys: { from: 1, to: 4 } };
const sheet = {
  layer: 0,
  excerpt,
  tile: tileOf([2, 2, 3], new Array(12).fill(1)),
  head: null,
  coarse: false,
  preview: false,
  rows: [],
  keys: [],
};
const here = { answer, sheet, layer: 0, head: 1, pinned: null, output: null, weight: 25, erased: null };

test("without a choice the output of most interest is asked for, with its own row", () => {
  const asked = { layer: 0, head: 1, output: 1, row: 1, key: null, weight: 0.25, erased: null };
  assert.deepEqual(question(here), asked);
});

test("no weight is set before one is chosen, and 0 is one", () => {
  assert.equal(question({ ...here, weight: null })!.weight, null);
  assert.equal(question({ ...here, weight: 0 })!.weight, 0);
});

test("a pinned row is asked for with its output, counted from the beginning of the text", () => {
  const { output, row, key } = question({ ...here, pinned: { side: "target", index: 1, partner: 2 } })!;
  assert.deepEqual([output, row, key], [2, 2, 3]);
  const column = question({ ...here, pinned: { side: "source", index: 0 } })!;
  assert.deepEqual([column.output, column.row, column.key], [1, 1, 1]);
});

test("a chosen output stays where another row is pinned; one that there is not is none", () => {
  assert.equal(question({ ...here, output: 0, pinned: { side: "target", index: 1 } })!.output, 0);
  assert.equal(question({ ...here, output: 7 })!.output, 1);
});

test("in a layer whose rows are no outputs the row says nothing of the output", () => {
  const inside = { ...here, layer: 1, sheet: { ...sheet, layer: 1 } };
  const { output, row } = question({ ...inside, pinned: { side: "target", index: 1 } })!;
  assert.deepEqual([output, row], [1, 2]);
});

test("of joined pieces the whole word is erased, unless a token was chosen", () => {
  const words = [
    { from: 0, to: 1 },
    { from: 1, to: 3 },
  ];
  const pinned = { side: "target", index: 0, partner: 2 } as const;
  assert.deepEqual(question({ ...here, pinned }, words)!.erased, { from: 2, to: 4 });
  assert.deepEqual(question({ ...here, pinned, erased: 0 }, words)!.erased, { from: 0, to: 1 });
  assert.equal(question({ ...here, pinned, erased: 9 }, words)!.erased, null);
});

test("nothing is asked of an answer whose model cannot be run again", () => {
  assert.equal(question({ ...here, answer: { ...answer, doubt: null } }), null);
  assert.equal(question({ ...here, answer: { ...answer, map: null } }), null);
});

test("changes are written with their sign and two decimals", () => {
  assert.deepEqual(
    [-0.314, 0.5, -0.001, 12.34, null].map(signed),
    ["−0.31", "+0.50", "0.00", "+12.3", "−∞"],
  );
  // What rounds to zero has no sign: nobody can say of "−0.00" what it is.
  assert.deepEqual([0.001, -0.001, 0, -3].map(signed), ["0.00", "0.00", "0.00", "−3.00"]);
});

test("other weights are of one head, output and row", () => {
  const asked = question(here)!;
  assert.equal(adversaryKey("m", asked), adversaryKey("m", { ...asked, weight: 1, key: 2 }));
  assert.notEqual(adversaryKey("m", asked), adversaryKey("m", { ...asked, row: 0 }));
});

test("what a search found is said with the most that there can be", () => {
  const said = found({ changes: [], divergence: 0.17, at_most: 0.68, distance: 0.009, whole: true, weights: [] });
  assert.match(said, /^All rows of the head look elsewhere: 0\.17 nats of at most 0\.68 \(25 %/);
});

test("bars are of the keys that are seen, of many those that matter, in the order of the text", () => {
  const size = 100;
  const numbers = Array.from({ length: size }, (_, key) => (key === 7 || key === 90 ? 0.4 : 0.001));
  const effects: Effects = {
    output: "x",
    probability: 0.5,
    top: [],
    draws: 8,
    changes: [],
    how: "",
    key: 7,
    erased: null,
    weights: numbers,
    seen: numbers.map((_, key) => key !== 0),
    gradient: numbers.map((_, key) => (key === 50 ? -2 : 0)),
  };
  const { shown, left } = lines(effects);
  const keys = shown.map(({ key }) => key);
  assert.equal(shown.length + left, size - 1);
  assert.ok([7, 50, 90].every((key) => keys.includes(key)) && !keys.includes(0));
  assert.deepEqual(keys, [...keys].sort((a, b) => a - b));
});

test("a token of a list has the name that it has on the map", () => {
  const named = ["▁cat", "ing", "<0x0A>", "<s>", "▁", "Ġthe"].map(plain);
  assert.deepEqual(named, ["cat", "ing", "⟨newline⟩", "⟨begin⟩", "▁", "the"]);
});
