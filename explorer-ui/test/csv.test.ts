import assert from "node:assert/strict";
import { test } from "node:test";
import { csv, fileName, quoted } from "../src/csv.ts";
import { labels } from "../src/label.ts";
import { escaped } from "../src/pen.ts";

test("a CSV has a line for each weight in view, and none where no query may look", () => {
  const values = Float32Array.from([1, NaN, 0.25, 0.75]);
  const names = labels(["a", 'b,"c"'], 2);
  const part = { rows: { from: 0, to: 2 }, keys: { from: 0, to: 2 } };
  assert.equal(
    csv({ rows: 2, columns: 2, values }, names, names, part, { row: 5, key: 7 }),
    'row,row_token,key,key_token,weight\r\n5,a,7,a,1\r\n6,"b,""c""",7,a,0.25\r\n6,"b,""c""",8,"b,""c""",0.75\r\n',
  );
});

test("a field is quoted where a reader of CSV would take it for something else", () => {
  assert.equal(quoted("a\nb"), '"a\nb"');
  assert.equal(quoted(" a"), '" a"');
  assert.equal(quoted("a b"), "a b");
});

test("the name of a file has letters and digits of the title", () => {
  assert.equal(fileName("encoder 3 · self, head 5, rows 0–11", "svg"), "attlas-encoder-3-self-head-5-rows-0-11.svg");
  assert.equal(fileName("", "csv"), "attlas-map.csv");
});

test("a token is text in an SVG, whatever it holds", () => {
  assert.equal(escaped('<script a="b">&\u0000'), "&#60;script a=&#34;b&#34;&#62;&#38;\ufffd");
});
