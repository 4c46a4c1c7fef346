import type { GoldLink, Layer } from "./door.ts";
import { type Excerpt, type Span, group, same, whole } from "./excerpt.ts";
import type { Label } from "./label.ts";
import { styled } from "./dom.ts";
import { type Matrix, at, hidden } from "./matrix.ts";
import { type Ramp, colour, ink } from "./ramp.ts";
import { short } from "./share.ts";
import type { Place } from "./state.ts";
import { type Piece, fitted, hatched, painted, shortened, within } from "./painting.ts";
import { EDGE, FONT, LONGEST_LABEL, NAMED, type Plan, exact, planned, withNames } from "./map-plan.ts";
import type { Pen } from "./pen.ts";
import type { Theme } from "./theme.ts";
import { type Size, each, inView, panned, pixelOf, placeAt, roundPlaces, touched, zoomed } from "./viewport.ts";

/** What a map shows at one moment. Places are counted from the beginning of `near.excerpt`. */
export interface Picture {
  readonly layer: Layer;
  /** The part in view, in whole places. */
  readonly view: Excerpt;
  /** The whole map, pooled, which is there at once; and a part of it, as exact as it came. */
  readonly far: Piece | null;
  readonly near: Piece;
  readonly rows: readonly Label[];
  readonly columns: readonly Label[];
  /** Whether keys go from right to left, as their words run. */
  readonly rightToLeft: boolean;
  readonly ramp: Ramp;
  readonly active: Place | null;
  /** Whether that is kept. */
  readonly kept: boolean;
  /** The links of annotators, keys by rows. */
  readonly gold: readonly GoldLink[];
  /** The first row under a veil. */
  readonly until: number;
}

/** A cell of `near`. */
export interface Cell {
  readonly row: number;
  readonly column: number;
}

/** What a reader can do with the map. */
export interface Handlers {
  /** `spoken`: by keys, so that what stands there is said. */
  point(cell: Cell, spoken: boolean): void;
  click(cell: Cell): void;
  /** Another part, when the reader stays there. */
  view(excerpt: Excerpt, from?: Layer): void;
  leave(): void;
  /** Where the crosshair is now, which may be later than what is drawn. */
  here(): Place | null;
}

const NUMBERED = 28; // px of a cell, from which its number stands in it
const CLOSER = 8; // how much a click on pooled weights comes closer
const SETTLED = 120; // ms after the last movement
const MINIMAP = 84; // px of the longer side

/** From the left and from the top of the map, how wide, how high. */
type Mark = readonly [number, number, number, number];

/** The weights as a picture that is panned and zoomed: queries go down, keys go across. */
export class MapView {
  private picture: Picture | null = null;
  private shown: Excerpt | null = null; // in parts of places, while the reader moves
  private plan: Plan | null = null;
  private bitmaps = new Map<Matrix, HTMLCanvasElement>();
  private readonly pointers = new Map<number, { x: number; y: number }>();
  private frame: { from: { x: number; y: number }; to: { x: number; y: number } } | null = null;
  private travelled = 0;
  private settling: ReturnType<typeof setTimeout> | undefined;
  // Of the crosshair and the frame that is drawn: elements, because to move them paints nothing.
  private readonly marks = document.createElement("div");
  private measured = { width: 0, height: 0 };
  private step = 1; // one of so many tokens has its name
  private readonly mini = document.createElement("canvas");

  constructor(
    private readonly theme: Theme,
    private readonly canvas: HTMLCanvasElement,
    private readonly room: HTMLElement,
    private readonly handlers: Handlers,
  ) {
    this.marks.className = "crosshair";
    this.marks.ariaHidden = "true";
    this.marks.append(...Array.from({ length: 4 }, () => document.createElement("div")));
    canvas.after(this.marks);
    this.mini.className = "minimap";
    this.mini.ariaHidden = "true"; // the breadcrumbs say the same
    this.mini.hidden = true;
    room.append(this.mini);
    for (const event of ["pointerdown", "pointermove"] as const) {
      this.mini.addEventListener(event, (moved) => this.jump(moved));
    }
    canvas.addEventListener("pointermove", (event) => this.moved(event));
    canvas.addEventListener("pointerdown", (event) => this.pressed(event));
    canvas.addEventListener("pointerup", (event) => this.released(event));
    canvas.addEventListener("pointercancel", (event) => this.pointers.delete(event.pointerId));
    canvas.addEventListener("pointerleave", () => handlers.leave());
    canvas.addEventListener("wheel", (event) => this.wheeled(event), { passive: false });
    canvas.addEventListener("keydown", (event) => this.typed(event));
    new ResizeObserver(() => {
      const { width, height } = this.measured;
      if (width !== room.clientWidth || height !== room.clientHeight) this.redraw();
    }).observe(room);
  }

  /** Show a picture. What is painted once stays painted; pointing draws nothing but its marks. */
  draw(picture: Picture): void {
    const before = this.picture;
    this.picture = picture;
    const kept = picture.near.shade === before?.near.shade && picture.far?.shade === before.far?.shade;
    if (!kept || picture.ramp !== before?.ramp) this.bitmaps.clear();
    if (!this.shown || picture.layer !== before?.layer || !same(touched(this.shown), picture.view)) {
      this.shown = picture.view;
    }
    const parts = ({ layer, view, far, near, rows, columns, ramp, gold, until }: Picture) =>
      [layer, view, far, near, rows, columns, ramp, gold, until];
    const now = parts(picture);
    const still = before !== null && parts(before).every((part, index) => part === now[index]);
    if (still && this.plan) this.mark();
    else this.redraw();
  }

  private get rightToLeft(): boolean {
    return this.picture?.rightToLeft ?? false;
  }

  /** The cell of the weights that came, under a point of the canvas. */
  private cellAt(x: number, y: number): Cell | null {
    const { picture, plan, shown } = this;
    if (!picture || !plan || !shown) return null;
    const [across, down] = [x - plan.left, y - plan.top];
    if (across < 0 || down < 0 || across >= plan.width || down >= plan.height) return null;
    const along = this.rightToLeft ? plan.width - across : across;
    const { excerpt, matrix } = picture.near;
    const row = cellOf(excerpt.rows, matrix.rows, placeAt(shown.rows, down, plan.height));
    const column = cellOf(excerpt.keys, matrix.columns, placeAt(shown.keys, along, plan.width));
    return row === null || column === null ? null : { row, column };
  }

  private point(event: MouseEvent): { x: number; y: number } {
    const box = this.canvas.getBoundingClientRect();
    return { x: event.clientX - box.left, y: event.clientY - box.top };
  }

  private moved(event: PointerEvent): void {
    const here = this.point(event);
    const before = this.pointers.get(event.pointerId);
    if (!before) {
      const cell = this.cellAt(here.x, here.y);
      if (cell) this.handlers.point(cell, false);
      return;
    }
    this.pointers.set(event.pointerId, here);
    this.travelled += Math.abs(here.x - before.x) + Math.abs(here.y - before.y);
    if (this.frame) {
      this.frame = { from: this.frame.from, to: here };
      return this.mark();
    }
    const [one, other] = [...this.pointers.values()];
    if (!one) return;
    if (!other) return this.pan(before.x - here.x, before.y - here.y);
    const still = here === one ? other : one;
    const distance = (point: { x: number; y: number }) => Math.hypot(point.x - still.x, point.y - still.y);
    const middle = { x: (one.x + other.x) / 2, y: (one.y + other.y) / 2 };
    this.zoom(middle, distance(here) / Math.max(distance(before), 1));
  }

  private pressed(event: PointerEvent): void {
    if (event.button !== 0) return;
    const here = this.point(event);
    this.canvas.setPointerCapture(event.pointerId);
    this.pointers.set(event.pointerId, here);
    this.travelled = 0;
    this.frame = event.shiftKey ? { from: here, to: here } : null;
  }

  private released(event: PointerEvent): void {
    if (!this.pointers.delete(event.pointerId)) return;
    const { frame, picture } = this;
    this.frame = null;
    if (frame && this.travelled > 4) return this.enter(frame);
    if (this.travelled > 4 || !picture) return;
    const here = this.point(event);
    const cell = this.cellAt(here.x, here.y);
    if (!cell) return;
    if (!exact(picture.near)) this.zoom(here, CLOSER);
    else this.handlers.click(cell);
  }

  /** Show what is within a frame that was drawn. */
  private enter({ from, to }: { from: { x: number; y: number }; to: { x: number; y: number } }): void {
    const { plan, shown } = this;
    if (!plan || !shown) return;
    const flip = (x: number) => (this.rightToLeft ? plan.width - (x - plan.left) : x - plan.left);
    const span = (whole: Span, a: number, b: number, size: number): Span => ({
      from: placeAt(whole, Math.max(Math.min(a, b), 0), size),
      to: placeAt(whole, Math.min(Math.max(a, b), size - 1), size) + 1,
    });
    this.go({
      rows: span(shown.rows, from.y - plan.top, to.y - plan.top, plan.height),
      keys: span(shown.keys, flip(from.x), flip(to.x), plan.width),
    });
  }

  private wheeled(event: WheelEvent): void {
    const { picture, shown } = this;
    if (!picture || !shown) return;
    const { layer } = picture;
    const all = same(touched(shown), whole(layer));
    if (!event.ctrlKey && all && event.deltaY > 0) return; // what is around it scrolls
    event.preventDefault();
    const lines = event.deltaMode === 1 ? 16 : 1;
    this.zoom(this.point(event), Math.exp(-event.deltaY * lines * 0.002));
  }

  private typed(event: KeyboardEvent): void {
    const { picture, plan } = this;
    if (event.ctrlKey || event.altKey || event.metaKey || !picture || !plan) return;
    const { near, layer } = picture;
    const active = this.handlers.here();
    const here: Cell = {
      row: (active?.side === "target" ? active.index : active?.partner) ?? 0,
      column: (active?.side === "target" ? active.partner : active?.index) ?? 0,
    };
    const onward = this.rightToLeft ? -1 : 1;
    const steps: Record<string, [number, number]> = {
      ArrowUp: [-1, 0],
      ArrowDown: [1, 0],
      ArrowLeft: [0, -onward],
      ArrowRight: [0, onward],
    };
    const step = steps[event.key];
    const middle = this.middleOf(here) ?? { x: plan.left + plan.width / 2, y: plan.top + plan.height / 2 };
    if (step) {
      const clamp = (place: number, most: number) => Math.min(Math.max(place, 0), most - 1);
      const row = clamp(here.row + step[0], near.matrix.rows);
      const column = clamp(here.column + step[1], near.matrix.columns);
      this.handlers.point({ row, column }, true);
    } else if (event.key === "+" || event.key === "=") this.zoom(middle, 2);
    else if (event.key === "-") this.zoom(middle, 0.5);
    else if (event.key === "0") this.go(whole(layer));
    else if (event.key === "Enter" || event.key === " ") this.handlers.click(here);
    else return;
    event.preventDefault();
  }

  private zoom({ x, y }: { x: number; y: number }, factor: number): void {
    const { picture, plan, shown } = this;
    if (!picture || !plan || !shown) return;
    const share = (pixels: number, size: number) => Math.min(Math.max(pixels / size, 0), 1);
    const across = share(x - plan.left, plan.width);
    this.go({
      rows: zoomed(shown.rows, share(y - plan.top, plan.height), factor, picture.layer.queries, plan.height),
      keys: zoomed(
        shown.keys,
        this.rightToLeft ? 1 - across : across,
        factor,
        picture.layer.keys,
        plan.width,
      ),
    });
  }

  private pan(x: number, y: number): void {
    const { picture, plan, shown } = this;
    if (!picture || !plan || !shown) return;
    this.go({
      rows: panned(shown.rows, y, picture.layer.queries, plan.height),
      keys: panned(shown.keys, this.rightToLeft ? -x : x, picture.layer.keys, plan.width),
    });
  }

  /** Another part: at once with the weights that are there, and sharper when the reader stays. */
  private go(excerpt: Excerpt): void {
    this.shown = excerpt;
    this.redraw();
    clearTimeout(this.settling);
    const layer = this.picture?.layer; // another one may be shown by then
    this.settling = setTimeout(() => this.handlers.view(touched(excerpt), layer), SETTLED);
  }

  private redraw(): void {
    const { picture, shown } = this;
    const room = { width: this.room.clientWidth, height: this.room.clientHeight };
    this.measured = room;
    const pen = this.canvas.getContext("2d");
    if (!picture || !shown || !pen) return;
    if (room.width === 0 || room.height === 0) return;
    const family = this.theme.font;
    pen.font = `600 ${FONT}px ${family}`;
    const plan = planned(pen, picture, room, shown);
    this.plan = plan;
    const [width, height] = [plan.left + plan.width + EDGE, plan.top + plan.height + 4];
    fitted(this.canvas, width, height);
    // All of it in view: a finger moves what is around the map; else the map.
    const all = same(touched(shown), whole(picture.layer));
    styled(this.canvas, "touch-action", all ? "pan-x pan-y" : "none");
    this.render(pen, picture, plan, shown);
    this.drawMinimap();
    this.mark();
  }

  /** All but the marks. */
  private render(pen: Pen, picture: Picture, plan: Plan, shown: Excerpt): void {
    const family = this.theme.font;
    pen.save();
    pen.beginPath();
    pen.rect(plan.left, plan.top, plan.width, plan.height);
    pen.clip();
    const { far, near } = picture;
    if (far && far !== near) this.paint(pen, picture, far, plan, shown);
    this.paint(pen, picture, near, plan, shown);
    this.write(pen, picture, plan, shown, family);
    for (const link of picture.gold) this.frameLink(pen, link, plan, shown);
    // Rows that are not written yet are faint.
    const y = pixelOf(shown.rows, picture.until, plan.height);
    if (y < plan.height) {
      pen.fillStyle = `${this.theme.tone("paper")}e6`;
      pen.fillRect(plan.left, plan.top + y, plan.width, plan.height - y);
    }
    pen.restore();
    this.name(pen, picture, plan, shown, family);
  }

  /** How large the map and its names are in an export; null where nothing is shown. */
  get size(): Size | null {
    const plan = this.exported();
    return plan && { width: plan.left + plan.width + EDGE, height: plan.top + plan.height + 4 };
  }

  /** On screen a word is named when it is pointed at; a picture has names instead. */
  private exported(): Plan | null {
    const { picture, plan } = this;
    const pen = this.canvas.getContext("2d");
    if (!picture || !plan || !pen) return null;
    pen.font = `600 ${FONT}px ${this.theme.font}`;
    return withNames(pen, picture, plan);
  }

  /** Draw what is on screen with another pen; one of so many tokens then has its name. */
  export(pen: Pen): number {
    const { picture, shown } = this;
    const plan = this.exported();
    this.step = 1;
    if (!picture || !plan || !shown) return 1;
    this.render(pen, picture, plan, shown);
    this.drawMarks(pen, picture, plan, shown);
    return this.step;
  }

  /** So many times as near, around the middle. */
  closer(factor: number): void {
    const { plan } = this;
    if (plan) this.zoom({ x: plan.left + plan.width / 2, y: plan.top + plan.height / 2 }, factor);
  }

  /** The part in view, in whole places. */
  get view(): Excerpt | null {
    return this.shown && touched(this.shown);
  }

  private paint(pen: Pen, picture: Picture, piece: Piece, plan: Plan, shown: Excerpt): void {
    const { rows, keys } = piece.excerpt;
    const x = pixelOf(shown.keys, keys.from, plan.width);
    const y = pixelOf(shown.rows, rows.from, plan.height);
    const width = pixelOf(shown.keys, keys.to, plan.width) - x;
    const height = pixelOf(shown.rows, rows.to, plan.height) - y;
    pen.save();
    pen.translate(plan.left, plan.top);
    if (this.rightToLeft) {
      pen.translate(plan.width, 0);
      pen.scale(-1, 1);
    }
    pen.clearRect(x, y, width, height);
    pen.fillStyle = hatched(pen, this.theme.tone("line")) ?? this.theme.tone("line");
    pen.fillRect(x, y, width, height);
    pen.imageSmoothingEnabled = false;
    this.stretch(pen, piece, picture.ramp, [x, y, width, height]);
    pen.restore();
  }

  /** A frame that is seen on pale and on dark cells; a link that is only possible is dashed. */
  private frameLink(pen: Pen, { source, target, sure }: GoldLink, plan: Plan, shown: Excerpt): void {
    const ends = source.map((key) => this.x(key, plan, shown));
    const [top, bottom] = target.map((row) => plan.top + pixelOf(shown.rows, row, plan.height)) as [number, number];
    pen.setLineDash(sure ? [] : [4, 3]);
    for (const [tone, width] of [["paper", 4], ["ink", 2]] as const) {
      pen.strokeStyle = this.theme.tone(tone);
      pen.lineWidth = width;
      pen.strokeRect(Math.min(...ends) + 2, top + 2, Math.abs((ends[1] ?? 0) - (ends[0] ?? 0)) - 4, bottom - top - 4);
    }
    pen.setLineDash([]);
  }

  /** A picture of these weights, painted once for a size, as large as this. */
  private stretch(pen: Pen, piece: Piece, ramp: Ramp, place: Mark): void {
    const { rows, columns } = piece.matrix;
    const kept = this.bitmaps.get(piece.matrix);
    const fits = kept?.width === within(columns, place[2]) && kept.height === within(rows, place[3]);
    const bitmap = fits ? kept : painted([piece], ramp, false, place.slice(2));
    this.bitmaps.set(piece.matrix, bitmap);
    if (bitmap.width > 0 && bitmap.height > 0) pen.drawImage(bitmap, ...place);
  }

  /** Lines between the cells, and their numbers, when near. */
  private write(pen: Pen, picture: Picture, plan: Plan, shown: Excerpt, family: string): void {
    const across = plan.width / (shown.keys.to - shown.keys.from);
    const down = plan.height / (shown.rows.to - shown.rows.from);
    const { matrix, excerpt } = picture.near;
    if (Math.min(across, down) < 8 || !exact(picture.near)) return;
    pen.fillStyle = this.theme.tone("paper");
    const [rows, keys] = [inView(excerpt.rows, shown.rows), inView(excerpt.keys, shown.keys)];
    for (let row = rows.from; row <= rows.to; row++) {
      pen.fillRect(plan.left, plan.top + pixelOf(shown.rows, row, plan.height) - 0.5, plan.width, 1);
    }
    for (let key = keys.from; key <= keys.to; key++) {
      pen.fillRect(this.x(key, plan, shown) - 0.5, plan.top, 1, plan.height);
    }
    if (Math.min(across, down) < NUMBERED) return;
    pen.font = `11px ${family}`;
    pen.textAlign = "center";
    pen.textBaseline = "middle";
    for (let row = rows.from; row < rows.to; row++) {
      for (let key = keys.from; key < keys.to; key++) {
        const [line, column] = [row - excerpt.rows.from, key - excerpt.keys.from];
        if (hidden(matrix, line, column)) continue;
        const weight = at(matrix, line, column);
        pen.fillStyle = ink(colour(picture.ramp, picture.near.shade(weight, line)));
        const y = plan.top + pixelOf(shown.rows, row + 0.5, plan.height);
        pen.fillText(short(weight), this.x(key + 0.5, plan, shown), y);
      }
    }
  }

  /** The names of the places along both axes when near, round numbers when far. */
  private name(pen: Pen, picture: Picture, plan: Plan, shown: Excerpt, family: string): void {
    pen.textBaseline = "middle";
    const cell = Math.min(
      plan.height / (shown.rows.to - shown.rows.from),
      plan.width / (shown.keys.to - shown.keys.from),
    );
    const font = plan.named.rows || plan.named.keys ? Math.min(FONT, Math.max(cell, NAMED)) : FONT;
    const write = (label: string) => {
      pen.font = `${font}px ${family}`;
      pen.fillStyle = this.theme.tone("quiet");
      pen.fillText(shortened(pen, label, LONGEST_LABEL), 0, 0);
    };
    for (const down of [true, false]) {
      const [span, size, labels] = down ? [shown.rows, plan.height, picture.rows] : [shown.keys, plan.width, picture.columns];
      const { rows, keys } = picture.near.excerpt;
      const start = down ? rows.from : keys.from;
      const named = down ? plan.named.rows : plan.named.keys;
      const step = Math.ceil((NAMED * (span.to - span.from)) / size - 1e-6); // each, or as many as fit
      if (named) this.step = Math.max(this.step, step);
      const places = named
        ? each(inView({ from: 0, to: Infinity }, span)).filter((place) => place % step === 0)
        : roundPlaces(span, size, down ? 24 : 56);
      for (const place of places) {
        const label = named ? labels[place - start]?.text : place.toLocaleString("en");
        const at = down ? plan.top + pixelOf(span, place + 0.5, size) : this.x(place + 0.5, plan, shown);
        const from = down ? plan.top : plan.left;
        if (label === undefined || at < from || at > from + size) continue;
        pen.save();
        pen.textAlign = down ? "right" : named ? "left" : "center";
        if (down) pen.translate(plan.left - 8, at);
        else pen.translate(at, plan.top - (named ? 8 : 12));
        if (!down && named) pen.rotate(-Math.PI / 2);
        write(label);
        pen.restore();
      }
    }
  }

  private x(key: number, plan: Plan, shown: Excerpt): number {
    const along = pixelOf(shown.keys, key, plan.width);
    return plan.left + (this.rightToLeft ? plan.width - along : along);
  }

  private middleOf({ row, column }: Cell): { x: number; y: number } | null {
    const { picture, plan, shown } = this;
    if (!picture || !plan || !shown) return null;
    const { rows, keys } = picture.near.excerpt;
    const { matrix } = picture.near;
    const middle = (span: Span, index: number, count: number) =>
      span.from + ((index + 0.5) * (span.to - span.from)) / count;
    const x = this.x(middle(keys, column, matrix.columns), plan, shown);
    const y = pixelOf(shown.rows, middle(rows, row, matrix.rows), plan.height);
    return { x, y: plan.top + y };
  }

  /** The crosshair and the frame that is drawn. */
  private mark(): void {
    const { picture, plan, shown } = this;
    if (!picture || !plan || !shown) return;
    for (const name of ["left", "top", "width", "height"] as const) styled(this.marks, name, `${plan[name]}px`);
    this.marks.classList.toggle("kept", picture.kept);
    this.marksOf(picture, plan, shown).forEach((mark, index) => {
      const element = this.marks.children[index] as HTMLElement;
      if (element.hidden !== (!mark)) element.hidden = !mark;
      if (!mark) return;
      const [x, y, width, height] = mark.map((one) => `${Math.round(one * 100) / 100}px`) as [string, string, string, string];
      styled(element, "width", width);
      styled(element, "height", height);
      styled(element, "transform", `translate(${x}, ${y})`);
    });
  }

  /** All of the map, and what of it is in view, while that is only a part. */
  private drawMinimap(): void {
    const { picture, shown, mini } = this;
    const part = picture !== null && shown !== null && !same(touched(shown), whole(picture.layer));
    mini.hidden = !part || !picture.far;
    const pen = mini.getContext("2d");
    if (!picture || !shown || !picture.far || mini.hidden || !pen) return;
    const { layer } = picture;
    const scale = MINIMAP / Math.max(layer.queries, layer.keys);
    const [width, height] = [Math.max(layer.keys * scale, 16), Math.max(layer.queries * scale, 16)];
    fitted(mini, width, height);
    if (this.rightToLeft) {
      pen.translate(width, 0);
      pen.scale(-1, 1);
    }
    this.stretch(pen, picture.far, picture.ramp, [0, 0, width, height]);
    const along = (span: Span, most: number, size: number) =>
      [(span.from / most) * size, Math.max(((span.to - span.from) / most) * size, 4)] as const;
    const [top, tall] = along(shown.rows, layer.queries, height);
    const [start, wide] = along(shown.keys, layer.keys, width);
    pen.strokeStyle = this.theme.tone("accent");
    pen.lineWidth = 2;
    pen.strokeRect(Math.min(start, width - wide), Math.min(top, height - tall), wide, tall);
  }

  /** Bring the place of the minimap under a point into the middle. */
  private jump(event: PointerEvent): void {
    const { picture, plan, shown } = this;
    if (!picture || !plan || !shown || event.buttons === 0) return;
    const box = this.mini.getBoundingClientRect();
    const [across, down] = [(event.clientX - box.left) / box.width, (event.clientY - box.top) / box.height];
    const to = (span: Span, share: number, most: number, size: number): Span => {
      const move = share * most - (span.from + span.to) / 2;
      return panned(span, (move / (span.to - span.from)) * size, most, size);
    };
    this.go({
      rows: to(shown.rows, down, picture.layer.queries, plan.height),
      keys: to(shown.keys, this.rightToLeft ? 1 - across : across, picture.layer.keys, plan.width),
    });
  }

  private drawMarks(pen: Pen, picture: Picture, plan: Plan, shown: Excerpt): void {
    pen.strokeStyle = this.theme.tone("accent");
    pen.save();
    pen.beginPath();
    pen.rect(plan.left - 1, plan.top - 1, plan.width + 2, plan.height + 2);
    pen.clip();
    this.marksOf(picture, plan, shown).forEach((mark, index) => {
      if (!mark) return;
      const [x, y, width, height] = mark;
      pen.lineWidth = index === 2 ? 3 : 2;
      pen.setLineDash(index === 3 ? [6, 4] : []);
      pen.strokeRect(plan.left + x, plan.top + y, width, height);
    });
    pen.setLineDash([]);
    pen.restore();
  }

  /** The row and the column that are pointed at, their cell, and the frame that is drawn. */
  private marksOf({ active, near: { excerpt, matrix } }: Picture, plan: Plan, shown: Excerpt): readonly (Mark | null)[] {
    const { frame } = this;
    const drawn: Mark | null = frame && [
      Math.min(frame.from.x, frame.to.x) - plan.left,
      Math.min(frame.from.y, frame.to.y) - plan.top,
      Math.abs(frame.to.x - frame.from.x),
      Math.abs(frame.to.y - frame.from.y),
    ];
    const target = active?.side === "target";
    const [row, column] = target ? [active.index, active.partner] : [active?.partner, active?.index];
    const down = row === undefined ? null : group(excerpt.rows, row, matrix.rows);
    const along = column === undefined ? null : group(excerpt.keys, column, matrix.columns);
    const y = down && pixelOf(shown.rows, down.from, plan.height);
    const tall = down && Math.max(pixelOf(shown.rows, down.to, plan.height) - (y ?? 0), 1);
    const x = along && this.x(this.rightToLeft ? along.to : along.from, plan, shown) - plan.left;
    const wide = along && Math.max(((along.to - along.from) / (shown.keys.to - shown.keys.from)) * plan.width, 1);
    return [
      y === null || tall === null ? null : [0, y, plan.width, tall],
      x === null || wide === null ? null : [x, 0, wide, plan.height],
      y === null || tall === null || x === null || wide === null ? null : [x, y, wide, tall],
      drawn,
    ];
  }
}

/** The cell of a part in which a place is; null where it is outside. */
function cellOf(span: Span, count: number, place: number): number | null {
  if (place < span.from || place >= span.to) return null;
  const length = span.to - span.from;
  return Math.floor(((place - span.from + 1) * count - 1) / length);
}
