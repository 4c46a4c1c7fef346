import type { Tile } from "./tile.ts";

/** The weights of one head, or of the mean of all: rows are queries, columns are slots. */
export interface Matrix {
  readonly rows: number;
  readonly columns: number;
  readonly values: Float32Array;
}

/** One head's weights, counted from 0. */
export function head(tile: Tile, index: number): Matrix {
  const size = tile.rows * tile.slots;
  const levels = tile.levels.subarray(index * size, (index + 1) * size);
  const values = Float32Array.from(levels, (level) => level * tile.scale);
  return { rows: tile.rows, columns: tile.slots, values };
}

/** (1 / heads) · Σ over the heads. */
export function mean(tile: Tile): Matrix {
  const size = tile.rows * tile.slots;
  const values = new Float32Array(size);
  for (let index = 0; index < tile.levels.length; index++) {
    const at = index % size;
    values[at] = (values[at] ?? 0) + ((tile.levels[index] ?? 0) * tile.scale) / tile.heads;
  }
  return { rows: tile.rows, columns: tile.slots, values };
}

export function at(matrix: Matrix, row: number, column: number): number {
  return matrix.values[row * matrix.columns + column] ?? 0;
}

/** What one query looked at: a distribution over the slots. */
export function row(matrix: Matrix, index: number): number[] {
  return Array.from({ length: matrix.columns }, (_, column) => at(matrix, index, column));
}

/** How much each query looked at one slot: not a distribution, the queries decide one by one. */
export function column(matrix: Matrix, index: number): number[] {
  return Array.from({ length: matrix.rows }, (_, line) => at(matrix, line, index));
}

export function largest(matrix: Matrix): number {
  return matrix.values.reduce((most, value) => Math.max(most, value), 0);
}

/** The indices of the `count` largest of these numbers, largest first; equals in their order. */
export function top(numbers: readonly number[], count: number): number[] {
  const found: number[] = [];
  numbers.forEach((number, index) => {
    const before = found.findIndex((other) => number > (numbers[other] ?? 0));
    if (before >= 0) found.splice(before, 0, index);
    else found.push(index);
    if (found.length > count) found.pop();
  });
  return found;
}

/** The indices of all of these numbers, largest first; equals in their order. */
export function descending(numbers: readonly number[]): number[] {
  return numbers
    .map((_, index) => index)
    .sort((a, b) => (numbers[b] ?? 0) - (numbers[a] ?? 0) || a - b);
}
