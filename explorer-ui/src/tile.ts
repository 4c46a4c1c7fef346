import { Problem } from "./problem.ts";

const MAGIC = 0x544c5441; // "ATLT", little-endian
const VERSION = 1;
const HEADER = 28;

/** A piece of an attention map: weight = level · scale, levels in the order [head][row][slot]. */
export interface Tile {
  readonly heads: number;
  readonly rows: number;
  readonly slots: number;
  readonly scale: number;
  readonly levels: Uint8Array | Uint16Array;
}

/**
 * Read a tile as the server packs it: a header of 28 bytes, little-endian, then one zlib stream.
 *
 *     0 "ATLT"   4 u16 version   6 u16 bits   8 u32 heads   12 u32 rows   16 u32 slots
 *     20 f32 scale   24 u32 bytes of the levels   28 the levels, deflated
 */
export async function unpack(buffer: ArrayBuffer): Promise<Tile> {
  if (buffer.byteLength < HEADER) throw damaged("its header is cut off");
  const header = new DataView(buffer);
  if (header.getUint32(0, true) !== MAGIC) throw damaged("it does not begin with ATLT");
  if (header.getUint16(4, true) !== VERSION) {
    throw damaged(`its version is ${header.getUint16(4, true)}, not ${VERSION}`);
  }
  const bits = header.getUint16(6, true);
  const heads = header.getUint32(8, true);
  const rows = header.getUint32(12, true);
  const slots = header.getUint32(16, true);
  const scale = header.getFloat32(20, true);
  const size = header.getUint32(24, true);
  const sound = (bits === 8 || bits === 16) && size === (heads * rows * slots * bits) / 8;
  if (!sound || !Number.isFinite(scale)) throw damaged("its sizes contradict each other");
  const raw = await inflated(new Uint8Array(buffer, HEADER), size);
  return { heads, rows, slots, scale, levels: bits === 8 ? raw : wide(raw) };
}

/** Inflate, and never hold more than `size` bytes, whatever the stream says. */
async function inflated(deflated: Uint8Array<ArrayBuffer>, size: number): Promise<Uint8Array> {
  const raw = new Uint8Array(size);
  let filled = 0;
  const stream = new Blob([deflated]).stream().pipeThrough(new DecompressionStream("deflate"));
  const reader = stream.getReader();
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

/** Little-endian pairs of bytes as numbers, on a machine of either kind. */
function wide(raw: Uint8Array): Uint16Array {
  const view = new DataView(raw.buffer, raw.byteOffset, raw.byteLength);
  return Uint16Array.from({ length: raw.length / 2 }, (_, i) => view.getUint16(2 * i, true));
}

function damaged(how: string): Problem {
  return new Problem("a whole tile of weights", `a damaged one (${how})`, "translate again");
}
