import assert from "node:assert/strict";
import { test } from "node:test";
import { Sheets } from "../src/ahead.ts";
import type { Answer, Door } from "../src/door.ts";
import { whole } from "../src/excerpt.ts";
import { layerOf, tileOf } from "./made.ts";

const layer = layerOf(12, 300); // of which one head comes at a time
const excerpt = whole(layer);
const answer: Answer = { text: null, score: null, map: "m", blank: "", layers: [layer, layer], remarks: [] };
const wanted = (head: number, layer = 0) => ({ layer, head, excerpt });
const rest = (ms = 120) => new Promise((done) => setTimeout(done, ms));

/** A door that notes what it was asked for, and which of it was let go. */
function opened(slow = 0) {
  const [tiles, aborted, tokens] = [[] as string[], [] as string[], [] as number[]];
  const none = () => Promise.reject(new Error("nobody asks for this"));
  const tile: Door["tile"] = (_map, layer, { head }, signal) => {
    tiles.push(`${layer}.${head}`);
    return new Promise((resolve, reject) => {
      signal.addEventListener("abort", () => {
        aborted.push(`${layer}.${head}`);
        reject(signal.reason as Error);
      });
      setTimeout(() => resolve(tileOf([1, 300, 300], [])), slow);
    });
  };
  const named: Door["tokens"] = (_map, layer) => {
    tokens.push(layer);
    return Promise.resolve({ rows: [], keys: [] });
  };
  const door = { model: none, translate: none, text: none, overview: none, statistics: none, image: none, tile, tokens: named };
  return { sheets: new Sheets(door), tiles, aborted, tokens };
}

test("a head at which one rests is there when it is chosen, and its tokens are asked for once", async () => {
  const { sheets, tiles, tokens } = opened();
  sheets.expect(answer, wanted(3));
  sheets.expect(answer, wanted(4)); // on the way to it
  assert.equal(sheets.ready(answer, wanted(4)), null);
  await rest();
  assert.equal(sheets.ready(answer, wanted(4))?.head, 4);
  assert.equal(sheets.ready(answer, wanted(3)), null);
  await sheets.get(answer, wanted(5), new AbortController().signal);
  assert.deepEqual([tiles, tokens], [["0.4", "0.5"], [0]]);
  sheets.expect(answer, wanted(4, 1));
  await rest();
  assert.deepEqual([tiles.at(-1), tokens], ["1.4", [0, 1]]);
});

test("what is on its way is not asked for again, and ends with what was chosen", async () => {
  const { sheets, tiles, aborted } = opened(200);
  const chosen = new AbortController();
  sheets.expect(answer, wanted(1));
  await rest(80);
  const came = sheets.get(answer, wanted(1), chosen.signal);
  sheets.expect(answer, wanted(2)); // the reader points at another one meanwhile
  await rest(80);
  assert.deepEqual([tiles, aborted], [["0.1", "0.2"], []]);
  chosen.abort();
  await assert.rejects(came);
  assert.deepEqual(aborted, ["0.1"]);
  sheets.expect(answer, wanted(7));
  await rest(80);
  assert.deepEqual(aborted, ["0.1", "0.2"]);
});

test("nothing is asked for after the reader has left", async () => {
  const { sheets, tiles } = opened();
  sheets.expect(answer, wanted(1));
  sheets.stop();
  await rest();
  sheets.expect(answer, wanted(1));
  sheets.expect(answer, null);
  await rest();
  assert.deepEqual(tiles, []);
});
