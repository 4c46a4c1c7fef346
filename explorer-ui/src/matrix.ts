import type { Tile } from "./tile.ts";

/**
 * The weights of one head, or of the mean of all: rows are queries, columns are keys. NaN where no
 * query may look.
 */
export interface Matrix {
  readonly rows: number;
  readonly columns: number;
  readonly values: Float32Array;
}

/** One head's weights, counted from 0. */
export function head(tile: Tile, index: number): Matrix {
  const size = tile.rows * tile.keys;
  const levels = tile.levels.subarray(index * size, (index + 1) * size);
  const scale = tile.scales[index] ?? 0;
  const table = weights(tile, scale);
  const values = new Float32Array(size);
  for (let i = 0; i < size; i++) values[i] = table[levels[i] as number] as number;
  return { rows: tile.rows, columns: tile.keys, values };
}

/** The weight of each level. */
function weights({ most, power }: Tile, scale: number): Float32Array {
  const table = new Float32Array(most + 2);
  for (let level = 0; level <= most; level++) {
    const share = level / most;
    table[level] = scale * (power === 2 ? share * share : share);
  }
  table[most + 1] = NaN;
  return table;
}

/** (1 / heads) · Σ over the heads; a head that may not look adds nothing. */
export function mean(tile: Tile): Matrix {
  const size = tile.rows * tile.keys;
  const values = new Float32Array(size).fill(NaN);
  for (let index = 0; index < tile.heads; index++) {
    const own = head(tile, index).values;
    for (let i = 0; i < size; i++) {
      const weight = own[i] as number;
      if (Number.isNaN(weight)) continue;
      const before = values[i] as number;
      values[i] = (Number.isNaN(before) ? 0 : before) + weight / tile.heads;
    }
  }
  return { rows: tile.rows, columns: tile.keys, values };
}

/** A part of a matrix. */
export function cut(
  matrix: Matrix,
  rows: { readonly from: number; readonly to: number },
  keys: { readonly from: number; readonly to: number },
): Matrix {
  const [height, width] = [rows.to - rows.from, keys.to - keys.from];
  if (height === matrix.rows && width === matrix.columns) return matrix;
  const values = new Float32Array(height * width);
  for (let row = 0; row < height; row++) {
    const start = (rows.from + row) * matrix.columns + keys.from;
    values.set(matrix.values.subarray(start, start + width), row * width);
  }
  return { rows: height, columns: width, values };
}

/** The weight, which is 0 where no query may look. */
export function at(matrix: Matrix, row: number, column: number): number {
  const weight = matrix.values[row * matrix.columns + column] ?? 0;
  return Number.isNaN(weight) ? 0 : weight;
}

/** Whether no query may look there. */
export function hidden(matrix: Matrix, row: number, column: number): boolean {
  return Number.isNaN(matrix.values[row * matrix.columns + column] ?? 0);
}

/** What one query looked at: a distribution over the keys. */
export function row(matrix: Matrix, index: number): number[] {
  const { columns, values } = matrix;
  const found = new Array<number>(columns);
  for (let column = 0; column < columns; column++) {
    const weight = values[index * columns + column] as number;
    found[column] = Number.isNaN(weight) ? 0 : weight;
  }
  return found;
}

/** How much each query looked at one key: not a distribution, the queries decide one by one. */
export function column(matrix: Matrix, index: number): number[] {
  return Array.from({ length: matrix.rows }, (_, line) => at(matrix, line, index));
}

export function largest(matrix: Matrix): number {
  let most = 0;
  for (const value of matrix.values) if (value > most) most = value;
  return most;
}

/** The indices of the `count` largest of these numbers, largest first; equals in their order. */
export function top(numbers: readonly number[], count: number): number[] {
  const found: number[] = [];
  let least = -Infinity; // of those found, once there are enough
  for (let index = 0; index < numbers.length; index++) {
    const number = numbers[index] as number;
    if (number <= least) continue;
    const before = found.findIndex((other) => number > (numbers[other] as number));
    found.splice(before < 0 ? found.length : before, 0, index);
    if (found.length > count) found.pop();
    if (found.length === count) least = numbers[found[count - 1] as number] as number;
  }
  return found;
}

/** The indices of all of these numbers, largest first; equals in their order. */
export function descending(numbers: readonly number[]): number[] {
  return numbers
    .map((_, index) => index)
    .sort((a, b) => (numbers[b] as number) - (numbers[a] as number) || a - b);
}
