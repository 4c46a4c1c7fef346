import assert from "node:assert/strict";
import { test } from "node:test";
import type { Answer } from "../src/door.ts";
import type { Excerpt } from "../src/excerpt.ts";
import { Problem } from "../src/problem.ts";
import * as change from "../src/state.ts";
import type { Sheet } from "../src/sheet.ts";
import { layerOf, tileOf } from "./made.ts";

const tile = tileOf([2, 2, 2], [1, 0, 0, 1, 0, 1, 1, 0]);
const answer: Answer = {
  text: "Hallo Welt",
  score: -0.5,
  map: "a1",
  blank: "",
  layers: [
    { ...layerOf(2, 2), name: "decoder.attention", within: false },
    { ...layerOf(1, 2), name: "encoder.attention" },
  ],
  remarks: [],
};
const excerpt: Excerpt = { rows: { from: 0, to: 2 }, keys: { from: 0, to: 2 } };
const sheet: Sheet = {
  layer: 0,
  excerpt,
  tile,
  head: null,
  coarse: false,
  preview: false,
  rows: [],
  keys: [],
};
const answered = change.answered(change.translating(change.empty, "hello"), "hello", answer, { sheet, view: excerpt, overview: null });

test("an answer ends the translating and points at the first word", () => {
  assert.equal(answered.translating, null);
  assert.deepEqual(change.active(answered), { side: "target", index: 0 });
});

test("a model without attention has nothing to point at", () => {
  const blind = change.answered(change.empty, "hello", { ...answer, map: null, layers: [] }, { sheet: null, view: null, overview: null });
  assert.equal(change.active(blind), null);
  assert.equal(change.matrix(blind), null);
});

test("the translation before stays in view while a new one is asked for", () => {
  assert.equal(change.translating(answered, "again").answer, answer);
});

test("a failure leaves the translation before, and says what was wrong", () => {
  const problem = new Problem("w", "c", "d");
  const failed = change.failed(change.translating(answered, "again"), problem);
  assert.deepEqual([failed.translating, failed.answer, failed.problem], [null, answer, problem]);
});

test("what is kept stays in view while the reader points elsewhere, until it is let go", () => {
  const kept = change.pinnedAt(answered, { side: "target", index: 1 });
  const elsewhere = change.pointedAt(kept, { side: "source", index: 0 });
  assert.deepEqual(change.active(elsewhere), { side: "target", index: 1 });
  assert.deepEqual(change.active(change.unpinned(elsewhere)), { side: "source", index: 0 });
});

test("keeping the same place once more lets it go", () => {
  const place: change.Place = { side: "target", index: 1 };
  assert.equal(change.pinnedAt(change.pinnedAt(answered, place), place).pinned, null);
});

test("words of one side are kept together, and let go one by one", () => {
  const one = change.pinnedAt(answered, { side: "target", index: 1, partner: 0 });
  const two = change.pinnedBeside(one, { side: "target", index: 0 });
  assert.deepEqual(two.pinned, { side: "target", index: 0, also: [1] });
  assert.deepEqual(change.pinnedBeside(two, { side: "target", index: 0 }).pinned, { side: "target", index: 1, also: [] });
  const none = change.pinnedBeside(change.pinnedBeside(two, { side: "target", index: 0 }), { side: "target", index: 1 });
  assert.equal(none.pinned, null);
  const other = change.pinnedBeside(two, { side: "source", index: 1 });
  assert.deepEqual(other.pinned, { side: "source", index: 1, also: [] }); // of one side alone
  assert.deepEqual(change.pinnedAt(two, { side: "target", index: 0 }).pinned, { side: "target", index: 0 });
});

test("a word beyond the most that are kept takes the place of the oldest", () => {
  let state: change.State = answered;
  for (let index = 0; index < 14; index++) state = change.pinnedBeside(state, { side: "target", index });
  assert.deepEqual(state.pinned, { side: "target", index: 13, also: [12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2] });
});

test("words that are kept together stay so where the other weights have all of them", () => {
  const both = change.pinnedBeside(change.pinnedAt(answered, { side: "target", index: 1 }), { side: "target", index: 0 });
  assert.deepEqual(change.withSheet(both, null, { ...sheet, layer: 1 }, excerpt).pinned, both.pinned);
  const rows = { from: 1, to: 2 };
  const part = { ...sheet, excerpt: { ...excerpt, rows }, tile: tileOf([2, 1, 2], [0, 1, 1, 0]) };
  assert.equal(change.withSheet(both, null, part, part.excerpt).pinned, null);
  assert.deepEqual(change.repinned(answered, change.link(both).pinned).pinned, both.pinned);
});

test("another cell of the same row is kept in place of the first", () => {
  const kept = change.pinnedAt(answered, { side: "target", index: 1, partner: 0 });
  const other: change.Place = { side: "target", index: 1, partner: 1 };
  assert.deepEqual(change.pinnedAt(kept, other).pinned, other);
});

test("a new answer lets go of what was kept", () => {
  const kept = change.pinnedAt(answered, { side: "target", index: 1 });
  assert.equal(change.answered(kept, "again", answer, { sheet, view: excerpt, overview: null }).pinned, null);
});

test("pointing at the same place again changes nothing", () => {
  assert.equal(change.pointedAt(answered, { side: "target", index: 0 }), answered);
});

test("a chosen head that the next layer lacks becomes the mean", () => {
  const fewer: Sheet = { ...sheet, layer: 1, tile: { ...tile, heads: 1, levels: tile.levels.subarray(0, 4) } };
  assert.equal(change.withSheet(answered, 1, fewer, excerpt).head, null);
  assert.equal(change.withSheet(answered, 0, fewer, excerpt).head, 0);
  assert.equal(change.withSheet(answered, 0, fewer, excerpt).layer, 1);
});

test("what is kept stays kept where the other weights have its place, and is let go elsewhere", () => {
  const kept = change.pinnedAt(answered, { side: "target", index: 1, partner: 0 });
  assert.deepEqual(change.withSheet(kept, null, { ...sheet, layer: 1 }, excerpt).pinned, kept.pinned);
  const laid = (from: number) => {
    const part: Excerpt = { ...excerpt, rows: { from, to: from + 1 } };
    return change.withSheet(kept, null, { ...sheet, excerpt: part, tile: tileOf([2, 1, 2], [0, 1, 1, 0]) }, part);
  };
  assert.deepEqual(laid(1).pinned, { side: "target", index: 0, partner: 0 }); // the same place of the text
  assert.equal(laid(0).pinned, null);
});

test("a link says what is shown, with places counted from the beginning of the text", () => {
  const rows = { from: 1, to: 2 };
  const part: Sheet = { ...sheet, excerpt: { ...excerpt, rows }, tile: tileOf([2, 1, 2], [0, 1, 1, 0]) };
  const shown = change.withSheet({ ...answered, head: 1 }, 1, part, part.excerpt);
  const kept = change.pinnedAt(shown, { side: "target", index: 0, partner: 1 });
  const link = change.link(kept);
  assert.deepEqual([link.text, link.layer, link.head, link.view], ["hello", 0, 1, part.excerpt]);
  assert.deepEqual(link.pinned, { side: "target", index: 1, partner: 1 });
  assert.deepEqual(change.repinned(shown, link.pinned).pinned, kept.pinned);
  assert.equal(change.link(change.withSheet(kept, null, sheet, excerpt)).view, null);
  assert.equal(change.link(change.withSheet(kept, null, sheet, excerpt)).head, "mean");
});

test("a weight that was set by hand is let go with the place of which it was", () => {
  const set = { ...change.empty, pinned: { side: "target", index: 1 }, weight: 40 } as const;
  assert.equal(change.pinnedAt(set, { side: "target", index: 2 }).weight, null);
  assert.equal(change.unpinned(set).weight, null);
  assert.equal(change.unpinned({ ...set, pinned: null }).weight, 40);
});

test("weights that are read do not end a translation that is under way", () => {
  const both = change.reading(change.translating(answered, "again"));
  assert.deepEqual([both.translating, both.reading], ["again", true]);
  const laid = change.withSheet({ ...both, slow: true }, null, sheet, excerpt);
  assert.deepEqual([laid.translating, laid.reading, laid.slow], ["again", false, true]);
});

test("a sheet of one head holds that one alone, whatever the mean", () => {
  const alone: Sheet = { ...sheet, head: 1, tile: { ...tile, heads: 1, levels: tile.levels.subarray(4) } };
  const shown = change.withSheet(answered, null, alone, excerpt);
  assert.deepEqual([0, 1, null].map((head) => change.holds(shown, head)), [false, true, false]);
  assert.deepEqual([...(change.matrix(shown)?.values ?? [])], [0, 1, 1, 0]);
  assert.equal(shown.head, 1);
});

test("in a coarse map nothing is pointed at until the reader does", () => {
  assert.equal(change.withSheet(answered, 0, { ...sheet, coarse: true, head: 0, excerpt: { ...excerpt, rows: { from: 0, to: 1 } } }, excerpt).pointed, null);
});

test("the weights in view are those of the chosen head, or of the mean", () => {
  assert.deepEqual([...(change.matrix({ ...answered, head: 1 })?.values ?? [])], [0, 1, 1, 0]);
  assert.deepEqual([...(change.matrix(answered)?.values ?? [])], [0.5, 0.5, 0.5, 0.5]);
});
