import assert from "node:assert/strict";
import { test } from "node:test";
import { deflateSync } from "node:zlib";
import { Problem } from "../src/problem.ts";
import { unpack } from "../src/tile.ts";

interface Told {
  magic?: string;
  version?: number;
  bits?: number;
  shape?: [number, number, number];
  scale?: number;
  size?: number;
  levels?: number[];
}

/** A tile as the server's docstring describes it, written byte by byte. */
function tile(told: Told = {}): ArrayBuffer {
  const { magic = "ATLT", version = 1, bits = 16, shape = [1, 2, 3], scale = 0.5 } = told;
  const levels = told.levels ?? [0, 1, 2, 3, 255, 65535];
  const raw = new DataView(new ArrayBuffer((levels.length * bits) / 8));
  levels.forEach((level, i) => (bits === 8 ? raw.setUint8(i, level) : raw.setUint16(2 * i, level, true)));
  const deflated = deflateSync(new Uint8Array(raw.buffer));
  const bytes = new Uint8Array(28 + deflated.length);
  const header = new DataView(bytes.buffer);
  bytes.set(new TextEncoder().encode(magic));
  header.setUint16(4, version, true);
  header.setUint16(6, bits, true);
  shape.forEach((count, i) => header.setUint32(8 + 4 * i, count, true));
  header.setFloat32(20, scale, true);
  header.setUint32(24, told.size ?? raw.byteLength, true);
  bytes.set(deflated, 28);
  return bytes.buffer;
}

test("a tile of 16 bits is read as it was written", async () => {
  const read = await unpack(tile());
  assert.deepEqual([read.heads, read.rows, read.slots, read.scale], [1, 2, 3, 0.5]);
  assert.deepEqual([...read.levels], [0, 1, 2, 3, 255, 65535]);
});

test("a tile of 8 bits is read as it was written", async () => {
  const read = await unpack(tile({ bits: 8, shape: [2, 1, 2], levels: [0, 7, 128, 255] }));
  assert.deepEqual([...read.levels], [0, 7, 128, 255]);
});

test("an empty tile is empty", async () => {
  const read = await unpack(tile({ shape: [1, 0, 3], levels: [], scale: 0 }));
  assert.equal(read.levels.length, 0);
});

const DAMAGED: [string, ArrayBuffer, RegExp][] = [
  ["too short for a header", new ArrayBuffer(12), /header is cut off/],
  ["not a tile", tile({ magic: "NOPE" }), /does not begin with ATLT/],
  ["of another version", tile({ version: 2 }), /version is 2, not 1/],
  ["with other bits", tile({ bits: 16, size: 12, shape: [1, 2, 4] }), /contradict/],
  ["holding more than it says", tile({ shape: [1, 1, 3], size: 6 }), /more than it says/],
  ["holding less than it says", tile({ shape: [1, 2, 4], size: 16 }), /less than it says/],
  ["cut off", tile().slice(0, 34), /does not inflate/],
];

for (const [how, buffer, wording] of DAMAGED) {
  test(`a tile ${how} is a problem that says so`, async () => {
    await assert.rejects(unpack(buffer), (thrown: unknown) => {
      assert.ok(thrown instanceof Problem);
      assert.match(thrown.message, wording);
      return true;
    });
  });
}
