import { type Matrix, largest } from "./matrix.ts";
import { percent } from "./share.ts";

/** How weights become colours. None of them hides that a map is uniform without saying so. */
export type Scale = "root" | "absolute" | "map" | "row" | "uniform";

export const SCALES: readonly (readonly [Scale, string])[] = [
  ["root", "0–100 %, by the root"],
  ["absolute", "0–100 %"],
  ["map", "up to the largest of the map"],
  ["row", "up to the largest of each row"],
  ["uniform", "times the even share, 1/n; numbers in %"],
];

export const MOST_TIMES = 16; // of the even share: more is as dark

/** A number from 0 to 1 for a weight in a row; how dark it is. */
export type Shading = (weight: number, row: number) => number;

/**
 * How dark the weights of a map are.
 *
 *     root √w   absolute w   map w / max w   row w_ij / max_j w_ij   uniform √(min(w·n, 16) / 16)
 *
 * `keys` is n, of the whole map.
 */
export function shading(scale: Scale, matrix: Matrix, keys: number): Shading {
  if (scale === "root") return (weight) => Math.sqrt(Math.min(weight, 1));
  if (scale === "absolute") return (weight) => Math.min(weight, 1);
  if (scale === "uniform") {
    return (weight) => Math.sqrt(Math.min(weight * keys, MOST_TIMES) / MOST_TIMES);
  }
  if (scale === "map") {
    const most = largest(matrix);
    return (weight) => (most > 0 ? weight / most : 0);
  }
  const most = rowMaxima(matrix);
  return (weight, row) => ((most[row] as number) > 0 ? weight / (most[row] as number) : 0);
}

function rowMaxima({ rows, columns, values }: Matrix): Float32Array {
  const most = new Float32Array(rows);
  for (let i = 0; i < values.length; i++) {
    const row = Math.floor(i / columns);
    const weight = values[i] as number;
    if (weight > (most[row] as number)) most[row] = weight;
  }
  return most;
}

/** A number under the legend, and where it stands, from 0 to 1. */
export interface Tick {
  readonly share: number;
  readonly text: string;
}

/** What the legend says under the colours. */
export function ticks(scale: Scale, most: number): Tick[] {
  const at = (share: number, text: string): Tick => ({ share, text });
  if (scale === "root") {
    return [0, 0.05, 0.25, 0.5, 1].map((weight) => at(Math.sqrt(weight), percent(weight)));
  }
  if (scale === "absolute") return [0, 0.25, 0.5, 0.75, 1].map((weight) => at(weight, percent(weight)));
  if (scale === "map") return [at(0, "0 %"), at(1, `${percent(most)}, the largest here`)];
  if (scale === "row") return [at(0, "0 %"), at(1, "the largest of its row")];
  return [0, 1, 4, MOST_TIMES].map((times) => at(Math.sqrt(times / MOST_TIMES), `${times} ×`));
}
