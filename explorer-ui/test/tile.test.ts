import assert from "node:assert/strict";
import { test } from "node:test";
import { deflateSync } from "node:zlib";
import { Problem } from "../src/problem.ts";
import { unpack, unpackOverview } from "../src/tile.ts";

interface Told {
  magic?: string;
  version?: number;
  bits?: number;
  power?: number;
  shape?: [number, number, number];
  scales?: number[];
  level?: number;
  sampled?: number;
  size?: number;
  levels?: number[];
}

/** A tile as the server's docstring describes it, written byte by byte. */
function tile(told: Told = {}): ArrayBuffer {
  const { magic = "ATLT", version = 2, bits = 16, power = 1, shape = [1, 2, 3] } = told;
  const levels = told.levels ?? [0, 1, 2, 3, 255, 65535];
  const scales = told.scales ?? shape.slice(0, 1).map(() => 0.5);
  const raw = new DataView(new ArrayBuffer(4 * scales.length + (levels.length * bits) / 8));
  scales.forEach((scale, i) => raw.setFloat32(4 * i, scale, true));
  const from = 4 * scales.length;
  levels.forEach((level, i) =>
    bits === 8 ? raw.setUint8(from + i, level) : raw.setUint16(from + 2 * i, level, true),
  );
  const deflated = deflateSync(new Uint8Array(raw.buffer));
  const bytes = new Uint8Array(28 + deflated.length);
  const header = new DataView(bytes.buffer);
  bytes.set(new TextEncoder().encode(magic));
  header.setUint16(4, version, true);
  header.setUint8(6, bits);
  header.setUint8(7, power);
  shape.forEach((count, i) => header.setUint32(8 + 4 * i, count, true));
  header.setUint16(20, told.level ?? 0, true);
  header.setUint16(22, told.sampled ?? 0, true);
  header.setUint32(24, told.size ?? raw.byteLength, true);
  bytes.set(deflated, 28);
  return bytes.buffer;
}

test("a tile of 16 bits is read as it was written", async () => {
  const read = await unpack(tile());
  assert.deepEqual([read.heads, read.rows, read.keys, read.power], [1, 2, 3, 1]);
  assert.deepEqual([[...read.scales], read.most], [[0.5], 65534]);
  assert.deepEqual([...read.levels], [0, 1, 2, 3, 255, 65535]);
  assert.deepEqual([read.pyramidLevel, read.sampled], [0, false]);
});

test("a tile of 8 bits is read as it was written", async () => {
  const told = { bits: 8, power: 2, shape: [2, 1, 2] as [number, number, number], scales: [1, 0.25] };
  const read = await unpack(tile({ ...told, levels: [0, 7, 128, 255], level: 3, sampled: 1 }));
  assert.deepEqual([...read.levels], [0, 7, 128, 255]);
  assert.deepEqual([[...read.scales], read.power, read.most], [[1, 0.25], 2, 254]);
  assert.deepEqual([read.pyramidLevel, read.sampled], [3, true]);
});

test("an empty tile is empty", async () => {
  const read = await unpack(tile({ shape: [1, 0, 3], levels: [], scales: [0] }));
  assert.equal(read.levels.length, 0);
});

function overview(tiles: ArrayBuffer[], magic = "ATLO"): ArrayBuffer {
  const size = tiles.reduce((sum, one) => sum + one.byteLength, 8 + 4 * tiles.length);
  const bytes = new Uint8Array(size);
  const header = new DataView(bytes.buffer);
  bytes.set(new TextEncoder().encode(magic));
  header.setUint16(4, 1, true);
  header.setUint16(6, tiles.length, true);
  let start = 8 + 4 * tiles.length;
  tiles.forEach((one, i) => {
    header.setUint32(8 + 4 * i, one.byteLength, true);
    bytes.set(new Uint8Array(one), start);
    start += one.byteLength;
  });
  return bytes.buffer;
}

test("the tiles of an overview are read in their order", async () => {
  const other = tile({ shape: [2, 1, 1], scales: [1, 2], levels: [1, 2] });
  const read = await unpackOverview(overview([tile(), other]));
  assert.deepEqual(read.map((one) => one.heads), [1, 2]);
});

test("a damaged overview is a problem that says so", async () => {
  const damaged = [overview([tile()], "NOPE"), overview([tile()]).slice(0, -1), new ArrayBuffer(3)];
  for (const one of damaged) await assert.rejects(unpackOverview(one), Problem);
});

const DAMAGED: [string, ArrayBuffer, RegExp][] = [
  ["too short for a header", new ArrayBuffer(12), /header is cut off/],
  ["not a tile", tile({ magic: "NOPE" }), /does not begin with ATLT/],
  ["of another version", tile({ version: 1 }), /version is 1, not 2/],
  ["with other bits", tile({ bits: 16, size: 16, shape: [1, 2, 4] }), /contradict/],
  ["with a curve that there is not", tile({ power: 3 }), /contradict/],
  ["with a scale that is no number", tile({ scales: [NaN] }), /no number/],
  ["holding more than it says", tile({ shape: [1, 1, 3], size: 10 }), /more than it says/],
  ["holding less than it says", tile({ shape: [1, 2, 4], size: 20 }), /less than it says/],
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
