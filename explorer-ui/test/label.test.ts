import assert from "node:assert/strict";
import { test } from "node:test";
import { direction, labels } from "../src/label.ts";

const texts = (tokens: string[]) => labels(tokens, tokens.length).map((label) => label.text);
const begins = (tokens: string[]) => labels(tokens, tokens.length).map((label) => label.begins);

test("pieces of words lose the mark of the space and keep which of them begin a word", () => {
  const pieces = ["▁A", "▁climb", "ing", "▁rock", ".", "</s>"];
  assert.deepEqual(texts(pieces), ["A", "climb", "ing", "rock", ".", "⟨end⟩"]);
  assert.deepEqual(begins(pieces), [true, true, false, true, false, true]);
});

test("without any mark every token is a word of its own", () => {
  assert.deepEqual(begins(["A", "climbing", "rock", "</s>"]), [true, true, true, true]);
});

test("a piece that is nothing but the mark can be seen", () => {
  assert.deepEqual(texts(["▁", "▁a"]), ["▁", "a"]);
});

test("the marks of GPT-2 and of WordPiece say where words begin, too", () => {
  assert.deepEqual(texts(["The", "Ġclimb", "ing", "Ġrock"]), ["The", "climb", "ing", "rock"]);
  assert.deepEqual(begins(["The", "Ġclimb", "ing", "Ġrock"]), [true, true, false, true]);
  assert.deepEqual(texts(["[CLS]", "climb", "##ing", "##"]), ["[CLS]", "climb", "ing", "##"]);
  assert.deepEqual(begins(["[CLS]", "climb", "##ing", "##"]), [true, true, false, true]);
});

test("the mark of GPT-2 is known in every script, also where a window begins within a sign", () => {
  const spoken = [
    ["<｜begin▁of▁sentence｜>", "Die", "ĠTÃ¼r", "Ċ", "Ġ", "  ", "ĠÐ", "¿ÑĥÑĤÑĮ"],
    ["Ĥ", "ĠæĹ", "¥æľ¬", "Ġð", "ŁĻ", "Ĥ", "ĠÃ"],
    ["Ġrock"],
  ];
  for (const tokens of spoken) {
    assert.deepEqual(begins(tokens), tokens.map((token, i) => i === 0 || token.startsWith("Ġ")));
  }
  assert.deepEqual(texts(["The", "Ġrock"]), ["The", "rock"]);
});

test("the Maltese letter that GPT-2 marks a space with stays a letter", () => {
  const written = [
    ["Ġanni", "mar", "id-dar", "laħaq"],
    ["Ġorġ", "qal", "."],
    ["Ġesù", "qal"],
    ["Iċ-ċavetta", "ta'", "Ġanni"],
    ["Ġanni", "jiekol", "il-ħobż"],
  ];
  for (const tokens of written) {
    assert.deepEqual(texts(tokens), tokens);
    assert.ok(begins(tokens).every(Boolean));
  }
  assert.deepEqual(texts(["▁", "Ġ", "or", "ġ", "▁qal"]), ["▁", "Ġ", "or", "ġ", "qal"]);
  assert.deepEqual(begins(["▁", "Ġ", "or", "ġ", "▁qal"]), [true, false, false, false, true]);
  assert.deepEqual(texts(["Ġ", "##or", "##ġ", "qal"]), ["Ġ", "or", "ġ", "qal"]);
  assert.deepEqual(begins(["Ġ", "##or", "##ġ", "qal"]), [true, false, false, true]);
});

test("a token of white space can be seen", () => {
  assert.deepEqual(texts(["a", " ", "b"]), ["a", "␣", "b"]);
});

test("markup is text, and is not taken for a mark of the model's own", () => {
  const [label] = labels(["<img src=x onerror=alert(1)>"], 1);
  assert.equal(label?.text, "<img src=x onerror=alert(1)>");
  assert.equal(label?.special, false);
});

test("an axis whose tokens are not known is numbered", () => {
  assert.deepEqual(labels(["a", "b"], 3).map((label) => label.text), ["0", "1", "2"]);
  assert.deepEqual(labels([], 2, 511).map((label) => label.text), ["511", "512"]);
});

test("a sentence runs the way of its first letter", () => {
  const way = (tokens: string[]) => direction(labels(tokens, tokens.length));
  assert.equal(way(["▁«", "▁مرحبا", "▁hello"]), "rtl");
  assert.equal(way(["▁שלום", "</s>"]), "rtl");
  assert.equal(way(["▁hello", "▁مرحبا"]), "ltr");
  assert.equal(way(["猫", "が"]), "ltr");
  assert.equal(way(["</s>", "1", "2"]), "ltr");
});
