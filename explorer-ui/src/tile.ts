import { Problem } from "./problem.ts";

const MAGIC = 0x544c5441; // "ATLT", little-endian
const VERSION = 2;
const HEADER = 28;
const SAMPLED = 1;

/**
 * A piece of an attention map, levels in the order [head][row][key].
 *
 *     weight = scale of the head · (level / most)^power;  the level most + 1 = no query may look here
 */
export interface Tile {
  readonly heads: number;
  readonly rows: number;
  readonly keys: number;
  readonly power: number;
  readonly most: number;
  /** A cell stands for up to 2ⁿ × 2ⁿ weights. */
  readonly pyramidLevel: number;
  /** Whether only some of the weights were read. */
  readonly sampled: boolean;
  readonly scales: Float32Array;
  readonly levels: Uint8Array | Uint16Array;
}

/**
 * Read a tile as the server packs it: a header of 28 bytes, little-endian, then one zlib stream.
 *
 *     0 "ATLT"   4 u16 version   6 u8 bits   7 u8 power   8 u32 heads   12 u32 rows   16 u32 keys
 *     20 u16 pyramid level   22 u16 sampled   24 u32 bytes of the rest once inflated
 *     28 f32 scale of each head; the levels; both deflated
 */
export async function unpack(buffer: ArrayBuffer): Promise<Tile> {
  if (buffer.byteLength < HEADER) throw damaged("its header is cut off");
  const header = new DataView(buffer);
  if (header.getUint32(0, true) !== MAGIC) throw damaged("it does not begin with ATLT");
  if (header.getUint16(4, true) !== VERSION) {
    throw damaged(`its version is ${header.getUint16(4, true)}, not ${VERSION}`);
  }
  const bits = header.getUint8(6);
  const power = header.getUint8(7);
  const [heads, rows, keys] = [8, 12, 16].map((place) => header.getUint32(place, true)) as [
    number,
    number,
    number,
  ];
  const size = header.getUint32(24, true);
  const sound = (bits === 8 || bits === 16) && (power === 1 || power === 2);
  if (!sound || size !== 4 * heads + (heads * rows * keys * bits) / 8) {
    throw damaged("its sizes contradict each other");
  }
  const raw = await inflated(new Uint8Array(buffer, HEADER), size);
  const view = new DataView(raw.buffer, raw.byteOffset, raw.byteLength);
  const scales = Float32Array.from({ length: heads }, (_, head) => view.getFloat32(4 * head, true));
  if (!scales.every(Number.isFinite)) throw damaged("a scale of it is no number");
  const levels = raw.subarray(4 * heads);
  return {
    heads,
    rows,
    keys,
    power,
    most: 2 ** bits - 2,
    pyramidLevel: header.getUint16(20, true),
    sampled: (header.getUint16(22, true) & SAMPLED) !== 0,
    scales,
    levels: bits === 8 ? levels : wide(levels),
  };
}

/** One head of it. */
export function only(tile: Tile, head: number): Tile {
  const size = tile.rows * tile.keys;
  return {
    ...tile,
    heads: 1,
    scales: tile.scales.slice(head, head + 1),
    levels: tile.levels.subarray(head * size, (head + 1) * size),
  };
}

const OVERVIEW = 0x4f4c5441; // "ATLO", little-endian

/**
 * The tiles of an overview, one for each layer:
 *
 *     0 "ATLO"   4 u16 version, 1   6 u16 how many   8 u32 bytes of each   then the tiles
 */
export async function unpackOverview(buffer: ArrayBuffer): Promise<Tile[]> {
  const view = new DataView(buffer);
  if (buffer.byteLength < 8 || view.getUint32(0, true) !== OVERVIEW) {
    throw damaged("it does not begin with ATLO");
  }
  if (view.getUint16(4, true) !== 1) throw damaged("its version is not 1");
  const count = view.getUint16(6, true);
  let start = 8 + 4 * count;
  if (buffer.byteLength < start) throw damaged("its header is cut off");
  const parts = Array.from({ length: count }, (_, index) => {
    const from = start;
    start += view.getUint32(8 + 4 * index, true);
    return buffer.slice(from, start);
  });
  if (start !== buffer.byteLength) throw damaged("its sizes contradict each other");
  return Promise.all(parts.map(unpack));
}

/** Inflate, and never hold more than `size` bytes, whatever the stream says. */
async function inflated(deflated: Uint8Array<ArrayBuffer>, size: number): Promise<Uint8Array> {
  const raw = new Uint8Array(size);
  let filled = 0;
  const { readable, writable } = new DecompressionStream("deflate");
  const reader = readable.getReader();
  void fed(writable.getWriter(), deflated).catch(() => undefined); // what is wrong is read
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) break;
      if (filled + value.length > size) throw damaged("it holds more than it says");
      raw.set(value, filled);
      filled += value.length;
    }
  } catch (thrown) {
    void reader.cancel().catch(() => undefined);
    throw thrown instanceof Problem ? thrown : damaged("it does not inflate");
  }
  if (filled !== size) throw damaged("it holds less than it says");
  return raw;
}

const CHUNK = 1 << 16; // bytes that are inflated at a time

async function fed(writer: WritableStreamDefaultWriter<BufferSource>, bytes: Uint8Array<ArrayBuffer>): Promise<void> {
  for (let at = 0; at < bytes.length; at += CHUNK) await writer.write(bytes.subarray(at, at + CHUNK));
  await writer.close();
}

/** Little-endian pairs of bytes as numbers, on a machine of either kind. */
function wide(raw: Uint8Array): Uint16Array {
  const found = new Uint16Array(raw.length / 2);
  for (let i = 0; i < found.length; i++) found[i] = (raw[2 * i] as number) | ((raw[2 * i + 1] as number) << 8);
  return found;
}

function damaged(how: string): Problem {
  return new Problem("a whole tile of weights", `a damaged one (${how})`, "translate again");
}
