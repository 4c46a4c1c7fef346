/** Where the cells of a heatmap lie, in CSS pixels. */
export interface Layout {
  readonly rows: number;
  readonly columns: number;
  readonly cell: number;
  /** The upper left corner of the first cell; the labels lie left of it and above it. */
  readonly left: number;
  readonly top: number;
  readonly width: number;
  readonly height: number;
  /** Of the labels over the columns, in radians: a quarter of π leans, a half stands. */
  readonly angle: number;
}

export interface Cell {
  readonly row: number;
  readonly column: number;
}

const LARGEST = 38;
const SLANTED = 19; // the smallest cells over which slanted labels do not touch
const UPRIGHT = 14; // the same for upright ones; below it only some labels are shown
const SMALLEST = 6; // of what a pointer can hit; a longer map is wider than the room and scrolls
// Where no single cell is to be hit, but a part of the map: it fits a phone and a screen's height.
const SMALLEST_COARSE = 0.25;
const WIDEST_COARSE = 640;
const WIDEST_CANVAS = 4096; // device pixels a side; browsers draw nothing on a much larger one

/** The widths of the labels: of the widest row, and of each column. */
export interface Widths {
  readonly row: number;
  readonly columns: readonly number[];
}

/**
 * Cells as large as the room allows, from 6 to 38 px, or what a canvas can hold if that is less; where
 * a cell stands for many weights, all of them together take at most 640 px.
 * The labels over the columns lean to the right where the cells are wide, and stand where they are
 * narrow.
 */
export function layout(
  rows: number,
  room: number,
  widths: Widths,
  pixels = 1,
  coarse = false,
): Layout {
  const leaning = placed(rows, room, widths, Math.PI / 4, pixels, coarse);
  if (leaning.cell >= SLANTED) return leaning;
  return placed(rows, room, widths, Math.PI / 2, pixels, coarse);
}

function placed(
  rows: number,
  room: number,
  widths: Widths,
  angle: number,
  pixels: number,
  coarse: boolean,
): Layout {
  const columns = widths.columns.length;
  const highest = widths.columns.reduce((most, width) => Math.max(most, width), 0);
  const left = Math.ceil(widths.row + 12);
  const top = Math.ceil((highest + 8) * Math.sin(angle) + 12);
  // How far the last labels lean out over the last column.
  const lean = widths.columns
    .slice(-16)
    .map((width, i, last) => (width + 14) * Math.cos(angle) - (last.length - i - 0.5) * SLANTED);
  const right = Math.ceil(Math.max(2, ...lean));
  const fitting = (room - left - right) / Math.max(columns, 1);
  const most = (WIDEST_CANVAS / pixels - left - top - right) / Math.max(rows, columns, 1);
  const cell = coarse
    ? Math.min(Math.max(fitting, SMALLEST_COARSE), WIDEST_COARSE / Math.max(rows, columns), most)
    : Math.min(Math.max(Math.floor(fitting), SMALLEST), LARGEST, most);
  return {
    rows,
    columns,
    cell,
    left,
    top,
    angle,
    width: Math.ceil(left + columns * cell + right),
    height: Math.ceil(top + rows * cell + 2),
  };
}

/** Show every n-th label, so that they do not touch. */
export function stride(layout: Layout): number {
  return Math.max(1, Math.ceil(UPRIGHT / layout.cell));
}

/** The cell under a point; a point on a label belongs to no cell. */
export function cellAt(layout: Layout, x: number, y: number): Cell | null {
  const column = Math.floor((x - layout.left) / layout.cell);
  const row = Math.floor((y - layout.top) / layout.cell);
  const inside = column >= 0 && column < layout.columns && row >= 0 && row < layout.rows;
  return inside ? { row, column } : null;
}
