import assert from "node:assert/strict";
import { test } from "node:test";
import { joined, joinedLabels, wordAt, wordSpans } from "../src/joining.ts";
import { labels } from "../src/label.ts";

const words = (tokens: string[]) => {
  const named = labels(tokens, tokens.length);
  return joinedLabels(named, wordSpans(named)).map(({ text }) => text);
};

test("pieces are joined to the words that they spell, and marks of the model stay alone", () => {
  assert.deepEqual(words(["[CLS]", "un", "##believ", "##able", "!", "[SEP]"]), ["[CLS]", "unbelievable", "!", "[SEP]"]);
  assert.deepEqual(words(["▁A", "▁climb", "ing", "</s>"]), ["A", "climbing", "⟨end⟩"]);
  assert.deepEqual(words(["Hello", "Ġw", "orld"]), ["Hello", "world"]);
});

test("bytes that share a character are joined to it", () => {
  assert.deepEqual(words(["▁a", "▁", "<0xF0>", "<0x9F>", "<0x98>", "<0x80>"]), ["a", "😀"]);
});

test("a space that is a token of its own is no part of the word after it, and no word goes on over a line", () => {
  assert.deepEqual(words(["▁a", "▁", "outside", "▁"]), ["a", "outside", "▁"]);
  const story = ["▁h", "igh", ".", "<0x0A>", "L", "ily"];
  assert.deepEqual(words(story), ["high.", "⟨newline⟩", "Lily"]);
});

test("in scripts without spaces every piece is a word", () => {
  assert.deepEqual(words(["▁", "今日", "は", "晴れ"]), ["▁", "今日", "は", "晴れ"]);
});

test("weights are summed over the keys of a word, and their mean is taken over its queries", () => {
  const values = Float32Array.from([0.1, 0.2, 0.7, 0.3, 0.5, 0.2, 0, 0, 1]);
  const matrix = joined({ rows: 3, columns: 3, values }, [{ from: 0, to: 2 }, { from: 2, to: 3 }], [
    { from: 0, to: 2 },
    { from: 2, to: 3 },
  ]);
  const expected = [(0.3 + 0.8) / 2, (0.7 + 0.2) / 2, 0, 1];
  assert.deepEqual([matrix.rows, matrix.columns], [2, 2]);
  expected.forEach((weight, at) => assert.ok(Math.abs((matrix.values[at] ?? NaN) - weight) < 1e-6));
});

test("rows of words add up as rows of pieces do, also where some may not be looked at", () => {
  const values = Float32Array.from([1, NaN, NaN, 0.4, 0.6, NaN, 0.2, 0.3, 0.5]);
  const spans = [{ from: 0, to: 1 }, { from: 1, to: 3 }];
  const { values: found } = joined({ rows: 3, columns: 3, values }, spans, spans);
  assert.ok(Math.abs((found[0] ?? 0) - 1) < 1e-6);
  assert.ok(Number.isNaN(found[1]));
  assert.ok(Math.abs((found[2] ?? 0) + (found[3] ?? 0) - 1) < 1e-6);
});

test("a place is in the word that has it", () => {
  const spans = [{ from: 0, to: 1 }, { from: 1, to: 4 }, { from: 4, to: 5 }];
  assert.deepEqual([0, 1, 2, 3, 4].map((place) => wordAt(spans, place)), [0, 1, 1, 1, 2]);
});
