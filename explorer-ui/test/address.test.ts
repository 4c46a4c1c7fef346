import assert from "node:assert/strict";
import { test } from "node:test";
import { type Link, nowhere, read, written } from "../src/address.ts";
import { Problem } from "../src/problem.ts";

const whole: Link = {
  text: "Hello, world!",
  row: null,
  layer: 11,
  head: 3,
  view: { rows: { from: 10, to: 75 }, keys: { from: 0, to: 512 } },
  pinned: { side: "target", index: 12, partner: 300 },
  order: "weight",
  scale: "uniform",
  statistic: "normalized_entropy",
  sorted: true,
  least: 40,
  selected: [
    { layer: 0, head: 11 },
    { layer: 10, head: 2 },
  ],
  tab: "lines",
  side: "source",
  joined: true,
  threshold: 12,
  apart: true,
  output: 511,
  weight: 100,
  erased: 300,
  factor: 12,
  unmasked: true,
  unplaced: true,
  grown: 3,
  forced: [7, 31999],
  beside: 2,
};

test("a link gives back the sentence it was made from", () => {
  for (const text of ["Hello, world!", "50 % # & = +", "猫がいる", "مرحبا", "a\nb", "<img>", "a&l=3"]) {
    assert.deepEqual(read(written({ ...nowhere, text })), { ...nowhere, text });
  }
});

test("a link gives back each part of the state that it was made from", () => {
  const others: Partial<Link>[] = [
    {},
    { head: "mean", pinned: null },
    { text: null, row: 0 },
    { view: null, pinned: { side: "source", index: 0 } },
    { pinned: { side: "source", index: 7, also: [0, 300] } },
    { layer: 0, head: 0 },
    { order: "sentence", scale: "root", statistic: null, sorted: false },
    { selected: [], tab: null, side: "target", joined: false, threshold: 5, apart: false },
    { output: null, weight: 0, erased: null },
    { factor: 40, unmasked: false, forced: [] },
    { unplaced: false, grown: null },
    { text: "a", forced: [0] },
    { beside: null },
    { beside: 0 },
  ];
  for (const other of others) {
    const link = { ...whole, ...other };
    assert.deepEqual(read(written(link)), link);
  }
});

test("a page without anything has no hash, and such a hash says nothing", () => {
  assert.equal(written(nowhere), "");
  for (const hash of ["", "#", "#text="]) assert.deepEqual(read(hash), nowhere);
});

test("beside its text a link has at most 300 characters, of the longest map too", () => {
  const far = { from: 999_999_998, to: 999_999_999 };
  const longest = { ...whole, view: { rows: far, keys: far }, layer: 999_999, head: 999_999, tab: "distribution", selected: [{ layer: 99, head: 127 }, { layer: 98, head: 126 }, { layer: 97, head: 125 }] };
  const text = `text=${encodeURIComponent(whole.text ?? "")}`;
  assert.ok(written(longest).length - text.length <= 300);
});

const DAMAGED = [
  "#text=%E0%A4%A",
  "#other=1",
  "#text=a&text=b",
  "#text=a&v=2",
  "#text=a&v=1&l=x",
  "#text=a&v=1&h=-1",
  "#text=a&v=1&q=5-4&k=0-1",
  "#text=a&v=1&q=0-4",
  "#text=a&v=1&p=x3",
  "#text=a&v=1&s=rainbow",
  "#text=a&v=1&m=<img>",
  "#v=1&row=1e9",
  "#text=a&v=1&wt=101",
  "#text=a&v=1&f=81",
  "#text=a&fp=1..2",
  "#text=a&fp=-1",
  "#text=a&v=1&out=-1",
  "#text=a&v=1&n=0", // no page shows no word of a translation
];

for (const hash of DAMAGED) {
  test(`a damaged link is a problem, not a guess: ${hash}`, () => {
    assert.throws(() => read(hash), Problem);
  });
}
