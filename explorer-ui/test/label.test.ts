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
  assert.equal(way(["[CLS]", "ج", "##ل", "hello", "[SEP]"]), "rtl");
  assert.equal(way(["[CLS]", "hello", "ج"]), "ltr");
  assert.equal(way(["猫", "が"]), "ltr");
  assert.equal(way(["</s>", "1", "2"]), "ltr");
});

test("bytes are the text that they spell", () => {
  assert.deepEqual(texts(["The", "ĠcafÃ©", "Ċ"]), ["The", "café", "⟨newline⟩"]);
  assert.deepEqual(texts(["▁a", "<0xE6>", "<0x97>", "<0xA5>", "b"]), ["a", "日…", "…", "…", "b"]);
  assert.deepEqual(texts(["<0x0A>"]), ["⟨newline⟩"]);
});

test("a character of several tokens stands in the first of them, and their bytes are told", () => {
  const smile = labels(["Hi", "ĠðŁĺ", "Ģ", "!"], 4);
  assert.deepEqual(smile.map(({ text }) => text), ["Hi", "😀…", "…", "!"]);
  assert.equal(smile[2]?.whole, "bytes 80 of a character");
});

test("bytes that are no character are numbers", () => {
  assert.deepEqual(texts(["▁a", "<0xE6>", "b"]), ["a", "⟨E6⟩", "b"]);
  assert.deepEqual(texts(["▁a", "<0xFF>"]), ["a", "⟨FF⟩"]);
});

test("characters that cannot be seen are named", () => {
  assert.deepEqual(texts(["a\u202eb", "\t", "\u200b", "\u0007", "\ufeffx"]), [
    "a⟨right-to-left override⟩b",
    "⟨tab⟩",
    "⟨zero-width space⟩",
    "⟨U+0007⟩",
    "⟨byte order mark⟩x",
  ]);
});

test("joiners that words and emoji need stay where they are", () => {
  assert.deepEqual(texts(["می\u200cخواهم", "👩\u200d🚀", "\u200c"]), ["می\u200cخواهم", "👩\u200d🚀", "⟨zero-width non-joiner⟩"]);
});

test("a long token is cut, and its whole text is kept", () => {
  const [label] = labels(["x".repeat(10_000)], 1);
  assert.equal(Array.from(label?.text ?? "").length, 33);
  assert.equal(label?.whole?.length, 10_000);
});
