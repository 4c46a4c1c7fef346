import assert from "node:assert/strict";
import { test } from "node:test";
import { Problem } from "../src/problem.ts";
import { empty } from "../src/state.ts";
import { exact, percent, short } from "../src/share.ts";
import { amount, hint, listed, note, phrases, progress, sides, signature, spoken, summary, title } from "../src/wording.ts";

test("a weight is never said to be nothing when it is something", () => {
  assert.deepEqual([0, 0.0004, 0.004, 0.873, 1].map(percent), ["0 %", "<1 %", "<1 %", "87 %", "100 %"]);
  assert.deepEqual([0, 0.0004, 0.0125, 1].map(exact), ["0 %", "<0.1 %", "1.3 %", "100.0 %"]);
  assert.deepEqual([0.004, 0.873].map(short), ["", "87"]);
});

test("only what is known of a model is said", () => {
  assert.deepEqual(phrases({}), []);
  const facts = { source_language: "en", target_language: "de", attention: "none", parameters: 8123456 };
  assert.deepEqual(phrases(facts), ["English → German", "no attention", "8.1 million parameters"]);
  assert.deepEqual(phrases({ source_language: "en", bleu: null }), []);
});

test("a BLEU comes with how it was measured", () => {
  const facts = { bleu: 34.12, bleu_sentences: 1014, bleu_signature: "nrefs:1|tok:13a" };
  assert.deepEqual(phrases(facts), ["validation BLEU 34.1"]);
  assert.equal(signature(facts), "BLEU on 1014 sentences: nrefs:1|tok:13a");
});

test("amounts are rounded to what a person reads", () => {
  assert.deepEqual([999, 12345, 8123456, 999_999_999, 3.2e9].map(amount), [
    "999",
    "12,345",
    "8.1 million",
    "1.0 billion",
    "3.2 billion",
  ]);
});

test("a screen reader hears the three largest of a word", () => {
  const plain = (text: string) => text.replace(/[\u2068\u2069]/g, "");
  const across = ["a", "b", "c", "d"];
  assert.equal(
    plain(summary({ side: "target", index: 0 }, "Haus", [0.1, 0.6, 0.05, 0.25], across)),
    "Haus: looked at b 60 %, d 25 %, a 10 %",
  );
  assert.equal(
    plain(summary({ side: "source", index: 0 }, "the", [0.001, 0, 0, 0], across)),
    "the: was looked at by nothing in particular",
  );
});

test("a translation has words, and what looks at itself has tokens", () => {
  const plain = (text: string) => text.replace(/[\u2068\u2069]/g, "");
  const across = { translated: true, within: false };
  const within = { translated: true, within: true };
  const saved = { translated: false, within: false };
  const [target, source] = [{ side: "target", index: 0 }, { side: "source", index: 0 }] as const;
  assert.deepEqual([across, within, saved].map((kind) => Object.values(sides(kind))), [
    ["Source", "Translation"],
    ["Looked at", "Looking"],
    ["Source", "Target"],
  ]);
  assert.equal(plain(title(target, ["a"], across)), "Where “a” looked");
  assert.equal(plain(title(source, ["a"], across)), "Which words looked at “a”");
  assert.equal(plain(title(source, ["a"], within)), "Which tokens looked at “a”");
  assert.equal(plain(title({ ...target, also: [2] }, ["a", "b"], across)), "Where “a”, “b” looked");
  assert.match(note({ ...target, also: [2] }, across, [0.5, 0.5]), /share of the mean attention of these words; together 100 %/);
  assert.match(note({ ...source, also: [2] }, across, [1.2]), /went to these together/);
  assert.match(note(target, across, [0.5, 0.5]), /each source token.*this word’s.*together 100 %/);
  assert.match(note(target, within, [0.25, 0.5]), /each token here.*this token’s.*together 75 %/);
  assert.match(note(source, across, [1]), /Of each word of the translation here/);
  assert.match(note(source, saved, [1]), /Of each token here/);
});

test("a coarse map says how much a cell stands for", () => {
  const part = { rows: { from: 0, to: 131_072 }, keys: { from: 0, to: 600 } };
  assert.match(hint(part), /up to 256 × 2\. .*Click a cell/);
  assert.equal(hint(null), "");
  assert.match(spoken(512, 300, { translated: false, within: true }, true), /largest weights: 512 rows \(looking\)/);
});

test("what takes long is said to take long", () => {
  assert.equal(progress(empty), "");
  assert.equal(progress({ ...empty, translating: "a" }), "Translating…");
  assert.match(progress({ ...empty, translating: "a", slow: true }), /Still translating/);
  assert.equal(progress({ ...empty, reading: true }), "");
  assert.match(progress({ ...empty, reading: true, slow: true }), /Reading the weights\. A long map/);
  assert.equal(progress({ ...empty, reading: true, slow: true, share: 0.374 }), "Reading the weights: 37 %");
});

test("a text of a trace is listed by its row and by how it begins", () => {
  assert.equal(listed(0, ""), "0");
  assert.equal(listed(2, "the cat"), "2: the cat");
});

test("a problem of the server is told in its words, anything else in ours", () => {
  const body = { expected: "a sentence", got: "an empty one", hint: "type a few words" };
  assert.equal(Problem.read(body)?.message, "Expected a sentence; got an empty one. Type a few words.");
  assert.equal(Problem.read({ expected: "x" }), null);
  assert.equal(Problem.read(null), null);
  assert.match(Problem.of(new TypeError("oops")).message, /error of the page \(oops\)/);
});
