import assert from "node:assert/strict";
import { test } from "node:test";
import * as address from "../src/address.ts";
import { Problem } from "../src/problem.ts";
import { exact, percent, short } from "../src/share.ts";
import { amount, phrases, signature, summary } from "../src/wording.ts";

test("an address gives back the sentence it was made from", () => {
  for (const text of ["Hello, world!", "50 % # & = +", "猫がいる", "مرحبا", "a\nb", "<img>"]) {
    assert.equal(address.read(address.written(text)), text);
  }
});

test("an address without a sentence, or with a damaged one, gives none", () => {
  for (const hash of ["", "#", "#text=", "#other=1", "#text=%E0%A4%A"]) {
    assert.equal(address.read(hash), null);
  }
});

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

test("a problem of the server is told in its words, anything else in ours", () => {
  const body = { wanted: "a sentence", came: "an empty one", do: "type a few words" };
  assert.equal(Problem.read(body)?.message, "Wanted a sentence; got an empty one. Type a few words.");
  assert.equal(Problem.read({ wanted: "x" }), null);
  assert.equal(Problem.read(null), null);
  assert.match(Problem.of(new TypeError("oops")).message, /error of the page \(oops\)/);
});
