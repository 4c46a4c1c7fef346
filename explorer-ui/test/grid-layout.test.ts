import assert from "node:assert/strict";
import { test } from "node:test";
import type { Layer } from "../src/door.ts";
import { type Head, grid, headAt, moved, sheets, short, sorted } from "../src/grid-layout.ts";
import { layerOf } from "./made.ts";

const writes = (text: string) => 7 * text.length;
const named = (heads: number, stack: string, number: number, kind: string): Layer => ({
  ...layerOf(heads, 9, 9, `${stack}.${number}.${kind}`),
  title: `${stack} ${number} · ${kind}`,
  sheet: `${stack} · ${kind}`,
});
// A model of two depths: cross-attention comes first, as the server sends it.
const layers = [
  named(2, "decoder", 0, "cross"),
  named(4, "encoder", 0, "self"),
  named(4, "encoder", 1, "self"),
  named(3, "encoder", 2, "self"),
  named(2, "decoder", 0, "self"),
];

test("every head of every layer has its picture once, whatever the depths", () => {
  const { thumbnails } = grid(layers, 400, writes);
  const names = thumbnails.map(({ layer, head }) => `${layer} ${head}`);
  assert.equal(new Set(names).size, 2 + 4 + 4 + 3 + 2);
  assert.equal(names.length, 15);
});

test("layers stand under the heading of their sheet", () => {
  assert.deepEqual(sheets(layers), [["decoder · cross", [0]], ["encoder · self", [1, 2, 3]], ["decoder · self", [4]]]);
  assert.deepEqual(layers.map(short), ["0", "0", "1", "2", "0"]);
  const headings = grid(layers, 400, writes).writing.filter((one) => one.heading);
  assert.deepEqual(headings.map((one) => one.text), ["decoder · cross", "encoder · self", "decoder · self"]);
});

test("few pictures grow to the height that there is, and many or sorted ones do not", () => {
  const few = [named(4, "layer", 0, "self"), named(4, "layer", 1, "self")].map((one) => ({ ...one, sheet: "" }));
  const low = grid(few, 400, writes, null, 100);
  const tall = grid(few, 400, writes, null, 300);
  assert.equal(low.size, 44);
  assert.ok(tall.size > 80 && tall.height <= 300, `${tall.size} ${tall.height}`);
  assert.ok(tall.width <= 402);
  const sortedHeads = sorted(few, ({ head }) => head);
  assert.equal(grid(few, 400, writes, sortedHeads, 300).size, grid(few, 400, writes, sortedHeads).size);
  const many = Array.from({ length: 12 }, (_, index) => named(12, "layer", index, "self"));
  assert.equal(grid(many, 280, writes, null, 300).size, grid(many, 280, writes).size);
});

test("no two pictures lie on one another, and a point in one finds it", () => {
  for (const room of [80, 240, 900]) {
    for (const order of [null, sorted(layers, ({ head }) => head)]) {
      const plan = grid(layers, room, writes, order);
      for (const one of plan.thumbnails) {
        const half = plan.size / 2;
        const { layer, head } = headAt(plan, one.x + half, one.y + half) ?? { layer: -1, head: -1 };
        assert.deepEqual([layer, head], [one.layer, one.head]);
        assert.ok(one.x + plan.size <= plan.width && one.y + plan.size <= plan.height);
      }
    }
  }
  assert.equal(headAt(grid(layers, 400, writes), -50, -50), null);
});

test("arrow keys go from head to head, and stay at the edges", () => {
  const plan = grid(layers, 400, writes);
  const go = (from: Head | null, ...keys: string[]) => {
    const { layer = -1, head = -1 } = keys.reduce<Head | null>((at, key) => moved(plan, at, key), from) ?? {};
    return [layer, head];
  };
  assert.deepEqual(go(null, "ArrowRight"), [0, 0]);
  assert.deepEqual(go({ layer: 1, head: 3 }, "ArrowDown"), [2, 3]);
  assert.deepEqual(go({ layer: 2, head: 3 }, "ArrowDown"), [3, 2]); // a layer with fewer heads
  assert.deepEqual(go({ layer: 0, head: 0 }, "ArrowUp"), [0, 0]);
  assert.deepEqual(go({ layer: 0, head: 1 }, "ArrowRight"), [1, 0]);
  assert.deepEqual(go({ layer: 2, head: 2 }, "End"), [4, 1]);
  assert.deepEqual(go({ layer: 2, head: 2 }, "Home", "ArrowLeft"), [0, 0]);
});

test("sorted heads stand over their names, which say the sheet where there are several", () => {
  const order = sorted(layers, ({ layer, head }) => (layer === 2 && head === 3 ? 9 : layer === 0 ? 8 + head / 10 : null)).slice(0, 3);
  const { writing, thumbnails, size, width } = grid(layers, 400, writes, order);
  const names = writing.filter((one) => !one.heading);
  assert.deepEqual(names.map(({ text }) => text), ["es 1.3", "dc 0.1", "dc 0.0"]);
  names.forEach(({ text, x, y }, index) => {
    const own = thumbnails[index]!;
    assert.ok(x - writes(text) >= own.x && x <= width && y > own.y + size);
  });
  const legend = writing.filter((one) => one.heading).map(({ text }) => text);
  assert.deepEqual(legend, ["dc: decoder · cross", "es: encoder · self", "ds: decoder · self"]);
  const single = grid(layers.slice(1, 3), 400, writes, [{ layer: 1, head: 2 }]);
  assert.deepEqual(single.writing.map(({ text }) => text), ["1.2"]);
  const unnamed = grid([{ ...layerOf(2, 3), title: "self", sheet: "self" }], 400, writes, [{ layer: 0, head: 1 }]);
  assert.deepEqual(unnamed.writing.map(({ text }) => text), ["1"]);
});

test("names of sorted heads do not touch each other", () => {
  for (const room of [80, 240, 900]) {
    const { writing } = grid(layers, room, writes, sorted(layers, ({ head }) => head));
    const names = writing.filter((one) => !one.heading);
    names.forEach((one, index) => {
      const next = names[index + 1];
      assert.ok(next === undefined || next.y > one.y + 12 || next.x - writes(next.text) >= one.x + 2);
    });
  }
});

test("heads are sorted by their number, largest first, and what is unknown is last", () => {
  const numbers: Record<string, number> = { "0 0": 0.2, "1 1": 0.9, "4 0": 0.2 };
  const order = sorted(layers, ({ layer, head }) => numbers[`${layer} ${head}`] ?? null);
  assert.equal(order.length, 15);
  assert.deepEqual(order.slice(0, 3).map(({ layer, head }) => `${layer} ${head}`), ["1 1", "0 0", "4 0"]);
});

test("a layer of a path that says little is called by it", () => {
  assert.equal(short({ ...layerOf(1, 3), title: "text.encoder.0", sheet: "encoder" }), "text.encoder.0");
  assert.equal(short({ ...layerOf(1, 3), title: "decoder · cross", sheet: "decoder · cross" }), "");
});
