import assert from "node:assert/strict";
import { test } from "node:test";
import type { Answer } from "../src/door.ts";
import { Problem } from "../src/problem.ts";
import * as change from "../src/state.ts";
import type { Tile } from "../src/tile.ts";

const tile: Tile = { heads: 2, rows: 2, slots: 2, scale: 1, levels: Uint8Array.of(1, 0, 0, 1, 0, 1, 1, 0) };
const answer: Answer = {
  text: "Hallo Welt",
  score: -0.5,
  source: ["hello", "world"],
  target: ["Hallo", "Welt"],
  map: "a1",
  blank: "",
  layers: [{ name: "decoder.attention", heads: 2, queries: 2, slots: 2 }],
  remarks: [],
};
const answered = change.answered(change.asking(change.empty, "hello"), "hello", answer, tile);

test("an answer ends the asking and points at the first word", () => {
  assert.equal(answered.asking, null);
  assert.deepEqual(change.active(answered), { side: "target", index: 0 });
});

test("a model without attention has nothing to point at", () => {
  const blind = change.answered(change.empty, "hello", { ...answer, map: null, layers: [] }, null);
  assert.equal(change.active(blind), null);
  assert.equal(change.matrix(blind), null);
});

test("the translation before stays in view while a new one is asked for", () => {
  assert.equal(change.asking(answered, "again").answer, answer);
});

test("a failure leaves the translation before, and says what was wrong", () => {
  const problem = new Problem("w", "c", "d");
  const failed = change.failed(change.asking(answered, "again"), problem);
  assert.deepEqual([failed.asking, failed.answer, failed.problem], [null, answer, problem]);
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

test("another cell of the same row is kept in place of the first", () => {
  const kept = change.pinnedAt(answered, { side: "target", index: 1, partner: 0 });
  const other: change.Place = { side: "target", index: 1, partner: 1 };
  assert.deepEqual(change.pinnedAt(kept, other).pinned, other);
});

test("a new answer lets go of what was kept", () => {
  const kept = change.pinnedAt(answered, { side: "target", index: 1 });
  assert.equal(change.answered(kept, "again", answer, tile).pinned, null);
});

test("pointing at the same place again changes nothing", () => {
  assert.equal(change.pointedAt(answered, { side: "target", index: 0 }), answered);
});

test("a chosen head that the next layer lacks becomes the mean", () => {
  const fewer: Tile = { ...tile, heads: 1, levels: tile.levels.subarray(0, 4) };
  assert.equal(change.relayered({ ...answered, head: 1 }, 0, fewer).head, null);
  assert.equal(change.relayered({ ...answered, head: 0 }, 0, fewer).head, 0);
});

test("the weights in view are those of the chosen head, or of the mean", () => {
  assert.deepEqual([...(change.matrix({ ...answered, head: 1 })?.values ?? [])], [0, 1, 1, 0]);
  assert.deepEqual([...(change.matrix(answered)?.values ?? [])], [0.5, 0.5, 0.5, 0.5]);
});
