import type { Layer } from "../src/door.ts";
import type { Tile } from "../src/tile.ts";

/** A tile of 8 bits whose weights are the levels times `unit`. */
export function tileOf(shape: [number, number, number], levels: number[], unit = 1): Tile {
  const [heads, rows, keys] = shape;
  const scales = new Float32Array(heads).fill(unit * 254);
  const how = { power: 1, most: 254, pyramidLevel: 0, sampled: false };
  return { heads, rows, keys, ...how, scales, levels: Uint8Array.from(levels) };
}

export function layerOf(heads: number, queries: number, keys = queries, name = "a"): Layer {
  return { name, title: name, sheet: "self", within: true, heads, queries, keys };
}
