import assert from "node:assert/strict";
import { test } from "node:test";
import type { Answer, Door, Layer } from "../src/door.ts";
import { whole } from "../src/excerpt.ts";
import { Explorer } from "../src/explorer.ts";
import type { Theme } from "../src/theme.ts";
import type { Tile } from "../src/tile.ts";
import { layerOf, tileOf } from "./made.ts";

const turn = () => new Promise((done) => setTimeout(done)); // what is promised is done by then

/** An explorer at head 0 of layer 0, whose door gives each tile when the test says so. */
async function opened(...layers: Layer[]) {
  const answer: Answer = { text: null, score: null, map: "m", blank: "", layers, remarks: [] };
  const asked: { name: string; come: () => Promise<unknown>; signal: AbortSignal }[] = [];
  const none = () => Promise.reject(new Error("nobody asks for this"));
  const tile: Door["tile"] = (_map, index, { head, excerpt: { rows, keys } }, signal) =>
    new Promise<Tile>((resolve) => {
      const shape: [number, number, number] = [head === null ? layers[index]!.heads : 1, rows.to - rows.from, keys.to - keys.from];
      const come = () => (resolve(tileOf(shape, [])), turn());
      asked.push({ name: `${index}.${head ?? "all"}`, come, signal });
    });
  const door: Door = {
    model: () => Promise.resolve({ facts: {}, texts: ["a"] }),
    translate: none,
    text: () => Promise.resolve(answer),
    overview: () => Promise.resolve([]),
    statistics: () => Promise.resolve({ names: [], layers: [], first: { layer: 0, head: 0 }, sampled: false }),
    tile,
    tokens: () => Promise.resolve({ rows: [], keys: [] }),
    image: () => Promise.reject(new Error("no image")),
  };
  const explorer = new Explorer(door, {} as Theme, null);
  void explorer.begin("");
  await turn();
  await asked[0]!.come();
  const shown = () => [explorer.state.layer, explorer.state.head, explorer.state.view];
  assert.deepEqual(shown(), [0, 0, whole(layers[0]!)]);
  assert.equal(explorer.state.reading, false);
  return { explorer, asked, shown };
}

const part = { rows: { from: 1, to: 3 }, keys: { from: 0, to: 2 } };
const [small, other] = [layerOf(2, 5), layerOf(2, 2)]; // of which all heads come at once
const large = layerOf(12, 300); // of which one head comes at a time

test("a layer that was chosen comes, though the reader has just come closer", async () => {
  const { explorer, asked, shown } = await opened(small, small);
  explorer.chooseLayer(1);
  explorer.view(part); // what the map says a moment after the reader's last step
  await turn();
  for (const { come } of asked) await come();
  assert.deepEqual(shown(), [1, 0, part]);
  assert.equal(explorer.state.reading, false);
});

test("a part of one layer is not shown of another one that does not have it", async () => {
  const { explorer, asked, shown } = await opened(small, other);
  explorer.chooseLayer(1);
  explorer.view(part);
  await turn();
  for (const { come } of asked) await come();
  assert.deepEqual(shown(), [1, 0, whole(other)]);
  explorer.view(part, small); // the layer came first
  await turn();
  assert.deepEqual(shown(), [1, 0, whole(other)]);
});

test("who goes back to what is shown stays there", async () => {
  const { explorer, asked, shown } = await opened(small, other);
  explorer.chooseLayer(1);
  await turn();
  explorer.chooseLayer(0);
  assert.equal(asked[1]!.signal.aborted, true);
  for (const { come } of asked) await come();
  assert.deepEqual(shown(), [0, 0, whole(small)]);
  assert.equal(explorer.state.reading, false);
  explorer.chooseHead(1); // of the layer in view, not of the one that was let go
  assert.deepEqual(shown(), [0, 1, whole(small)]);
});

test("the same head is not asked for again while it is on its way, and has the part that was asked for", async () => {
  const { explorer, asked, shown } = await opened(large);
  explorer.chooseHead(3);
  await turn();
  explorer.see(0, 3);
  await turn();
  assert.deepEqual(asked.map(({ name }) => name), ["0.0", "0.3"]);
  explorer.view(part);
  assert.deepEqual(shown(), [0, 0, part]); // where the weights are there
  explorer.chooseHead(4);
  await turn();
  for (const { come } of asked) await come();
  assert.deepEqual(shown(), [0, 4, part]);
});
