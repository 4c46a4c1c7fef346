import assert from "node:assert/strict";
import { test } from "node:test";
import { logarithm, prefix, reading, tree, wordsOf } from "../src/beams.ts";
import type { Hypothesis } from "../src/door.ts";

const ended = (score: number, ...tokens: string[]): Hypothesis => ({
  text: tokens.join(" "),
  tokens,
  score,
  log_probability: score,
  finished: true,
});

test("what hypotheses begin with alike stands once, and each ends in one leaf", () => {
  const found = tree([
    ended(-1, "▁A", "▁man", "▁sits", "</s>"),
    ended(-2, "▁A", "▁man", "▁sat", "</s>"),
    ended(-3, "▁The", "▁man", "</s>"),
    ended(-4, "▁A", "▁dog", "</s>"),
  ]);
  assert.deepEqual(found.map(({ text, leaf }) => [text, leaf]), [["A", null], ["The man ⟨end⟩", 2]]);
  const [man, dog] = found[0]!.next;
  assert.deepEqual([man!.text, man!.next.map(({ text, leaf }) => [text, leaf])], ["man", [["sits ⟨end⟩", 0], ["sat ⟨end⟩", 1]]]);
  assert.deepEqual([dog!.text, dog!.leaf, dog!.next], ["dog ⟨end⟩", 3, []]);
});

test("a hypothesis that another one goes on from is a leaf inside", () => {
  const [only] = tree([ended(-1, "a", "b"), ended(-2, "a", "b", "c")]);
  assert.deepEqual([only!.text, only!.leaf, only!.next.length], ["a b", 0, 1]);
  assert.deepEqual(tree([]), []);
});

test("pieces of a word are read as one", () => {
  assert.equal(reading(["▁un", "believ", "able", "▁!"], 0, 4), "unbelievable !");
  assert.equal(reading(["▁un", "believ", "able", "▁!"], 1, 3), "believable");
});

test("another token follows the ids of those before it", () => {
  const output = (id: number) => ({ token: "x", id, log_probability: -1, top: [] });
  const beams = { notes: [], num_beams: 5, hypotheses: [], outputs: [output(7), output(8), output(9)] };
  assert.deepEqual(prefix(beams, 2, 30), [7, 8, 30]);
  assert.deepEqual(prefix(beams, 0, 30), [30]);
  assert.deepEqual([logarithm(-3.214), logarithm(null)], ["−3.21", "−∞"]);
});

test("the words of a translation are the rows of their pieces, where the rows are its tokens", () => {
  const outputs = ["▁Sof", "a", "▁da", "</s>"];
  const doubt = { source: [], outputs, first: 0, rows: [false, true], keys: [false, true] };
  const answer = { text: "Sofa da", score: null, map: "m", blank: "", layers: [], remarks: [], doubt };
  assert.deepEqual(wordsOf(answer, 1), [{ from: 0, to: 2 }, { from: 2, to: 3 }, { from: 3, to: 4 }]);
  assert.deepEqual(wordsOf(answer, 0), []);
  assert.deepEqual(wordsOf({ ...answer, doubt: null }, 1), []);
});
