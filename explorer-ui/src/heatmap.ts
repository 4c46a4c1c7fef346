import type { Label } from "./label.ts";
import { type Cell, type Layout, cellAt, layout, stride } from "./layout.ts";
import { type Matrix, at } from "./matrix.ts";
import { type Ramp, colour } from "./ramp.ts";
import type { Shading } from "./scale.ts";
import type { Place } from "./state.ts";
import { tone } from "./theme.ts";

const FONT = 13;
const LONGEST_LABEL = 112; // px; a longer one ends in "…" and is read in full in its row

/** What a heatmap shows at one moment. */
export interface Picture {
  readonly matrix: Matrix;
  readonly rows: readonly Label[];
  readonly columns: readonly Label[];
  readonly shade: Shading;
  readonly ramp: Ramp;
  readonly active: Place | null;
  /** Whether a cell is the largest of several weights. */
  readonly coarse: boolean;
}

/** What a reader can do with a cell, or with two of them that are the corners of a part. */
export interface Handling {
  point(cell: Cell): void;
  click(cell: Cell): void;
  drag(from: Cell, to: Cell): void;
  leave(): void;
}

/** The colours and letters of the page, looked up once per drawing. */
interface Style {
  readonly ink: string;
  readonly quiet: string;
  readonly paper: string;
  readonly accent: string;
  readonly family: string;
}

/** The weights as a picture: what looks down the side, what is looked at along the top. */
export class Heatmap {
  private picture: Picture | null = null;
  private layout: Layout | null = null;
  private painted: HTMLCanvasElement | null = null;
  private drawnIn = "";
  private dragged: { from: Cell; to: Cell } | null = null;

  constructor(
    private readonly canvas: HTMLCanvasElement,
    private readonly room: HTMLElement,
    private readonly handling: Handling,
  ) {
    canvas.addEventListener("pointermove", (event) => this.moved(event));
    canvas.addEventListener("pointerdown", (event) => this.pressed(event));
    canvas.addEventListener("pointerup", (event) => this.released(event));
    canvas.addEventListener("pointercancel", () => this.letGo());
    canvas.addEventListener("pointerleave", () => handling.leave());
    new ResizeObserver(() => this.redraw()).observe(room);
  }

  /** Show a picture. What costs with the size of the map is done again only for another map. */
  draw(picture: Picture): void {
    const before = this.picture;
    this.picture = picture;
    const same = (name: "matrix" | "ramp" | "shade") => picture[name] === before?.[name];
    if (!(same("matrix") && same("ramp") && same("shade"))) this.painted = null;
    if (picture.rows !== before?.rows || picture.columns !== before.columns) this.layout = null;
    this.redraw();
  }

  private under(event: MouseEvent): Cell | null {
    if (this.layout === null) return null;
    const box = this.canvas.getBoundingClientRect();
    return cellAt(this.layout, event.clientX - box.left, event.clientY - box.top);
  }

  private moved(event: PointerEvent): void {
    const cell = this.under(event);
    if (cell === null) return;
    if (this.dragged !== null) {
      this.dragged = { from: this.dragged.from, to: cell };
      this.redraw();
    }
    this.handling.point(cell);
  }

  private pressed(event: PointerEvent): void {
    const cell = this.under(event);
    if (cell === null || event.button !== 0) return;
    // A finger that moves scrolls; a mouse or a pen draws the frame of a part.
    if (event.pointerType !== "touch") this.canvas.setPointerCapture(event.pointerId);
    this.dragged = { from: cell, to: cell };
  }

  private released(event: PointerEvent): void {
    const dragged = this.dragged;
    this.letGo();
    if (dragged === null) return;
    const { from, to } = dragged;
    if (from.row !== to.row || from.column !== to.column) this.handling.drag(from, to);
    else if (this.under(event) !== null) this.handling.click(from);
  }

  private letGo(): void {
    this.dragged = null;
    this.redraw();
  }

  private redraw(): void {
    const picture = this.picture;
    const room = this.room.clientWidth;
    const pen = this.canvas.getContext("2d");
    if (picture === null || pen === null || room === 0) return;
    const pixels = Math.max(1, window.devicePixelRatio);
    const style = styled();
    if (this.layout === null || this.drawnIn !== `${room} ${pixels}`) {
      this.drawnIn = `${room} ${pixels}`;
      this.layout = planned(pen, picture, room, pixels, style);
    }
    const plan = this.layout;
    const [width, height] = [Math.round(plan.width * pixels), Math.round(plan.height * pixels)];
    if (this.canvas.width !== width || this.canvas.height !== height) {
      this.canvas.width = width;
      this.canvas.height = height;
      this.canvas.style.setProperty("width", `${plan.width}px`);
      this.canvas.style.setProperty("height", `${plan.height}px`);
    }
    pen.setTransform(pixels, 0, 0, pixels, 0, 0);
    pen.clearRect(0, 0, plan.width, plan.height);
    this.painted ??= painted(picture);
    cells(pen, picture.matrix, this.painted, plan, style);
    marks(pen, picture, plan, style);
    if (this.dragged !== null) selection(pen, this.dragged, plan, style);
    names(pen, picture, plan, style);
  }
}

function styled(): Style {
  const [ink, quiet, paper, accent] = [tone("ink"), tone("quiet"), tone("paper"), tone("accent")];
  return { ink, quiet, paper, accent, family: getComputedStyle(document.body).fontFamily };
}

function planned(
  pen: CanvasRenderingContext2D,
  picture: Picture,
  room: number,
  pixels: number,
  style: Style,
): Layout {
  pen.font = font(true, style); // the label in view is bold
  const width = (label: Label) => Math.min(pen.measureText(label.text).width, LONGEST_LABEL);
  const row = picture.rows.reduce((most, label) => Math.max(most, width(label)), 0);
  const widths = { row, columns: picture.columns.map(width) };
  return layout(picture.matrix.rows, room, widths, pixels, picture.coarse);
}

function font(bold: boolean, style: Style): string {
  return `${bold ? "600 " : ""}${FONT}px ${style.family}`;
}

/** One pixel a weight, to be enlarged: as fast for a million cells as for a hundred. */
function painted({ matrix, shade, ramp }: Picture): HTMLCanvasElement {
  const small = document.createElement("canvas");
  if (matrix.rows === 0 || matrix.columns === 0) return small;
  [small.width, small.height] = [matrix.columns, matrix.rows];
  const image = new ImageData(matrix.columns, matrix.rows);
  for (let i = 0; i < matrix.values.length; i++) {
    const weight = matrix.values[i] ?? 0;
    if (Number.isNaN(weight)) continue; // no query may look there: the paper shows
    const paint = colour(ramp, shade(weight, Math.floor(i / matrix.columns)));
    image.data.set(paint, 4 * i);
    image.data[4 * i + 3] = 255;
  }
  small.getContext("2d")?.putImageData(image, 0, 0);
  return small;
}

function cells(
  pen: CanvasRenderingContext2D,
  matrix: Matrix,
  picture: HTMLCanvasElement,
  plan: Layout,
  style: Style,
): void {
  const [width, height] = [matrix.columns * plan.cell, matrix.rows * plan.cell];
  if (width === 0 || height === 0) return;
  pen.imageSmoothingEnabled = false;
  pen.drawImage(picture, plan.left, plan.top, width, height);
  if (plan.cell < 8) return;
  pen.fillStyle = style.paper;
  for (let row = 1; row < matrix.rows; row++) {
    pen.fillRect(plan.left, plan.top + row * plan.cell - 0.5, width, 1);
  }
  for (let column = 1; column < matrix.columns; column++) {
    pen.fillRect(plan.left + column * plan.cell - 0.5, plan.top, 1, height);
  }
}

/** A frame around the row or column in view, and around the cell that is pointed at. */
function marks(
  pen: CanvasRenderingContext2D,
  { matrix, active }: Picture,
  plan: Layout,
  style: Style,
): void {
  if (active === null) return;
  const { cell, left, top } = plan;
  pen.strokeStyle = style.accent;
  pen.lineWidth = 2;
  if (active.side === "target") {
    pen.strokeRect(left, top + active.index * cell, matrix.columns * cell, cell);
  } else {
    pen.strokeRect(left + active.index * cell, top, cell, matrix.rows * cell);
  }
  if (active.partner === undefined) return;
  const target = active.side === "target";
  const [row, column] = target ? [active.index, active.partner] : [active.partner, active.index];
  pen.lineWidth = 3;
  pen.strokeRect(left + column * cell, top + row * cell, cell, cell);
}

/** Around the part that is being chosen. */
function selection(
  pen: CanvasRenderingContext2D,
  { from, to }: { from: Cell; to: Cell },
  { cell, left, top }: Layout,
  style: Style,
): void {
  const [row, column] = [Math.min(from.row, to.row), Math.min(from.column, to.column)];
  const width = (Math.abs(to.column - from.column) + 1) * cell;
  const height = (Math.abs(to.row - from.row) + 1) * cell;
  pen.strokeStyle = style.accent;
  pen.lineWidth = 2;
  pen.setLineDash([6, 4]);
  pen.strokeRect(left + column * cell, top + row * cell, width, height);
  pen.setLineDash([]);
}

function names(
  pen: CanvasRenderingContext2D,
  picture: Picture,
  plan: Layout,
  style: Style,
): void {
  const { active } = picture;
  const step = stride(plan);
  const chosen = (side: "source" | "target", index: number): boolean =>
    active?.side === side ? active.index === index : active?.partner === index;
  const write = (label: Label, strong: boolean) => {
    pen.font = font(strong, style);
    pen.fillStyle = strong ? style.ink : style.quiet;
    pen.fillText(shortened(pen, label.text), 0, 0);
  };
  pen.textBaseline = "middle";
  // A label in the way of the one in view gives way to it.
  const shown = (side: "source" | "target", index: number, count: number): boolean => {
    if (chosen(side, index)) return true;
    if (index % step !== 0) return false;
    return step === 1 || !range(index, step, count).some((near) => chosen(side, near));
  };
  picture.rows.forEach((label, row) => {
    if (!shown("target", row, picture.rows.length)) return;
    pen.save();
    pen.textAlign = "right";
    pen.translate(plan.left - 8, plan.top + (row + 0.5) * plan.cell);
    write(label, chosen("target", row));
    pen.restore();
  });
  picture.columns.forEach((label, column) => {
    if (!shown("source", column, picture.columns.length)) return;
    pen.save();
    pen.textAlign = "left";
    pen.translate(plan.left + (column + 0.5) * plan.cell, plan.top - 8);
    pen.rotate(-plan.angle);
    write(label, chosen("source", column));
    pen.restore();
  });
}

function range(index: number, step: number, count: number): number[] {
  const start = Math.max(0, index - step + 1);
  return Array.from({ length: Math.min(count, index + step) - start }, (_, i) => start + i);
}

function shortened(pen: CanvasRenderingContext2D, text: string): string {
  if (pen.measureText(text).width <= LONGEST_LABEL) return text;
  const letters = Array.from(text);
  while (letters.length > 1 && pen.measureText(`${letters.join("")}…`).width > LONGEST_LABEL) {
    letters.pop();
  }
  return `${letters.join("")}…`;
}

/** The value under a place that names a cell. */
export function weightAt(matrix: Matrix, place: Place): number | null {
  if (place.partner === undefined) return null;
  return place.side === "target"
    ? at(matrix, place.index, place.partner)
    : at(matrix, place.partner, place.index);
}
