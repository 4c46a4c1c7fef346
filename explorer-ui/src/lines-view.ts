import type { Label } from "./label.ts";
import { type Along, type Line, along, linesOf, middleOf, tokenAt } from "./lines-layout.ts";
import type { Matrix } from "./matrix.ts";
import { fitted, shortened } from "./painting.ts";
import type { Side } from "./state.ts";
import type { Theme } from "./theme.ts";

/** What lines are drawn between. */
export interface Lines {
  readonly rows: readonly Label[];
  readonly keys: readonly Label[];
  readonly heads: readonly Matrix[];
  readonly colours: readonly string[];
  /** The least weight that has a line, from 0 to 1. */
  readonly threshold: number;
  readonly rightToLeft: boolean;
}

export interface Token {
  readonly side: Side;
  readonly index: number;
}

export interface Handlers {
  point(token: Token): void;
  pin(token: Token): void;
  /** How many lines were too many to be drawn. */
  left(count: number): void;
}

const MOST = 4000; // lines
const WORD = 26; // px that a word has across
const LONGEST = 110;
const LINE_HEIGHT = 20;
const COLUMN = 120;

/** Tokens that look, tokens that are looked at, and between them lines as thick as the weights. */
export class LinesView {
  private shown: Lines | null = null;
  private lines: readonly Line[] = [];
  private active: Token | null = null;
  private ends: { target: Along; source: Along } | null = null;
  private readonly canvas = document.createElement("canvas");
  private readonly over = document.createElement("canvas");
  private readonly spacer = document.createElement("div");
  private readonly observer = new ResizeObserver(() => this.redraw());

  constructor(
    private readonly theme: Theme,
    private readonly room: HTMLElement,
    private readonly handlers: Handlers,
  ) {
    this.spacer.className = "spacer";
    for (const canvas of [this.canvas, this.over]) {
      canvas.className = "sticky";
      canvas.ariaHidden = "true";
    }
    room.replaceChildren(this.spacer, this.canvas, this.over);
    room.addEventListener("scroll", () => this.redraw());
    room.addEventListener("pointermove", (event) => {
      const token = this.under(event);
      if (token) handlers.point(token);
    });
    room.addEventListener("click", (event) => {
      const token = this.under(event);
      if (token) handlers.pin(token);
    });
    room.addEventListener("keydown", (event) => this.pressed(event));
    this.observer.observe(room);
  }

  dispose(): void {
    this.observer.disconnect();
  }

  draw(lines: Lines): void {
    this.shown = lines;
    const found = linesOf(lines.heads, lines.threshold, MOST);
    this.lines = found.lines;
    this.handlers.left(found.left);
    this.ends = null;
    this.redraw();
  }

  point(token: Token | null): void {
    this.active = token;
    this.mark();
  }

  /** Whether words stand in two lines, one above the other; else in two columns. */
  private get wide(): boolean {
    return this.room.clientWidth > 1.3 * this.room.clientHeight;
  }

  private under(event: MouseEvent): Token | null {
    const { ends, room } = this;
    if (!ends) return null;
    const box = room.getBoundingClientRect();
    const [x, y] = [event.clientX - box.left, event.clientY - box.top];
    const across = this.wide ? y / room.clientHeight : x / room.clientWidth;
    const side: Side = across < 0.5 ? "target" : "source";
    const place = this.place(this.wide ? x + room.scrollLeft : y + room.scrollTop);
    const index = tokenAt(ends[side], place - this.shift(side));
    return index === null ? null : { side, index };
  }

  /** Along the axis, from where words begin. */
  private place(pixels: number): number {
    return this.wide && this.shown?.rightToLeft === true ? this.long - pixels : pixels;
  }

  private get long(): number {
    const { ends, room } = this;
    return Math.max(ends?.target.total ?? 0, ends?.source.total ?? 0, this.wide ? room.clientWidth : 0);
  }

  /** The shorter side stands in the middle of the longer one. */
  private shift(side: Side): number {
    return this.wide ? (this.long - (this.ends?.[side].total ?? 0)) / 2 : 0;
  }

  private pressed(event: KeyboardEvent): void {
    const { shown, active } = this;
    if (!shown || event.ctrlKey || event.altKey || event.metaKey) return;
    const here = active ?? { side: "target", index: 0 };
    const turned = this.wide && shown.rightToLeft ? -1 : 1;
    const [back, on, up, down] = this.wide
      ? ["ArrowLeft", "ArrowRight", "ArrowUp", "ArrowDown"]
      : ["ArrowUp", "ArrowDown", "ArrowLeft", "ArrowRight"];
    const count = (side: Side) => (side === "target" ? shown.rows.length : shown.keys.length);
    const to = (token: Token) => {
      const index = Math.min(Math.max(token.index, 0), count(token.side) - 1);
      this.active = { side: token.side, index };
      this.handlers.point(this.active);
      this.bring({ side: token.side, index });
    };
    if (event.key === back) to({ ...here, index: here.index - turned });
    else if (event.key === on) to({ ...here, index: here.index + turned });
    else if (event.key === up) to({ ...here, side: "target" });
    else if (event.key === down) to({ ...here, side: "source" });
    else if (event.key === "Enter" || event.key === " ") this.handlers.pin(here);
    else return;
    event.preventDefault();
  }

  private bring({ side, index }: Token): void {
    const { ends, room } = this;
    if (!ends) return;
    const place = middleOf(ends[side], index) + this.shift(side);
    if (this.wide) room.scrollLeft = this.place(place) - room.clientWidth / 2;
    else room.scrollTop = place - room.clientHeight / 2;
  }

  private redraw(): void {
    const { shown, room } = this;
    const pen = this.canvas.getContext("2d");
    const [width, height] = [room.clientWidth, room.clientHeight];
    if (!shown || !pen || width === 0 || height === 0) return;
    room.classList.toggle("wide", this.wide);
    pen.font = `13px ${this.theme.font}`;
    const size = (label: Label) => (this.wide ? Math.min(pen.measureText(label.text).width, LONGEST) : 0);
    const least = this.wide ? 14 : LINE_HEIGHT;
    const gap = this.wide ? 8 : 0;
    this.ends = {
      target: along(shown.rows.map(size), least, gap),
      source: along(shown.keys.map(size), least, gap),
    };
    const long = Math.ceil(this.long);
    this.spacer.style.setProperty("width", this.wide ? `${long}px` : "1px");
    this.spacer.style.setProperty("height", this.wide ? "1px" : `${long}px`);
    for (const canvas of [this.canvas, this.over]) fitted(canvas, width, height);
    this.stroke(pen, this.lines, 1);
    this.mark();
  }

  /** A point of a token at the edge of the lines. */
  private at(side: Side, index: number): { x: number; y: number } {
    const { ends, room } = this;
    const place = !ends ? 0 : middleOf(ends[side], index) + this.shift(side);
    return this.wide
      ? { x: this.place(place) - room.scrollLeft, y: side === "target" ? WORD : room.clientHeight - WORD }
      : { x: side === "target" ? this.column : room.clientWidth - this.column, y: place - room.scrollTop };
  }

  private get column(): number {
    return Math.min(COLUMN, this.room.clientWidth / 3);
  }

  private stroke(pen: CanvasRenderingContext2D, lines: readonly Line[], strength: number): void {
    const { shown, room } = this;
    if (!shown) return;
    const [width, height] = [room.clientWidth, room.clientHeight];
    const several = shown.heads.length;
    pen.lineCap = "round";
    for (const { row, key, weight, head } of lines) {
      const [from, to] = [this.at("target", row), this.at("source", key)];
      const beside = (head - (several - 1) / 2) * 2;
      if (this.wide ? Math.max(from.x, to.x) < 0 || Math.min(from.x, to.x) > width : Math.max(from.y, to.y) < 0 || Math.min(from.y, to.y) > height) continue;
      pen.globalAlpha = Math.min((0.25 + 0.7 * weight) * strength, 1);
      pen.strokeStyle = shown.colours[head] ?? "";
      pen.lineWidth = 0.75 + weight * 5;
      pen.beginPath();
      if (this.wide) {
        const middle = (from.y + to.y) / 2;
        pen.moveTo(from.x + beside, from.y);
        pen.bezierCurveTo(from.x + beside, middle, to.x + beside, middle, to.x + beside, to.y);
      } else {
        const middle = (from.x + to.x) / 2;
        pen.moveTo(from.x, from.y + beside);
        pen.bezierCurveTo(middle, from.y + beside, middle, to.y + beside, to.x, to.y + beside);
      }
      pen.stroke();
    }
    pen.globalAlpha = 1;
  }

  private write(pen: CanvasRenderingContext2D): void {
    const { shown, room } = this;
    if (!shown) return;
    pen.textBaseline = "middle";
    for (const side of ["target", "source"] as const) {
      const labels = side === "target" ? shown.rows : shown.keys;
      labels.forEach((label, index) => {
        const { x, y } = this.at(side, index);
        const outside = this.wide ? x < -LONGEST || x > room.clientWidth + LONGEST : y < -LINE_HEIGHT || y > room.clientHeight + LINE_HEIGHT;
        if (outside) return;
        pen.fillStyle = this.theme.tone(label.special ? "quiet" : "ink");
        pen.font = `13px ${this.theme.font}`;
        const before = side === "target";
        pen.textAlign = this.wide ? "center" : before ? "right" : "left";
        const most = this.wide ? LONGEST : this.column - 14;
        const [left, top] = this.wide ? [x, before ? y - 13 : y + 13] : [x + (before ? -8 : 8), y];
        pen.fillText(shortened(pen, label.text, most), left, top);
      });
    }
  }

  /** The lines of the token that is pointed at, over all others, which fade. */
  private mark(): void {
    const { active, shown, ends } = this;
    const pen = this.over.getContext("2d");
    if (!pen || !shown || !ends) return;
    pen.clearRect(0, 0, this.room.clientWidth, this.room.clientHeight);
    const known = active !== null && active.index >= 0 && active.index < (active.side === "target" ? shown.rows : shown.keys).length;
    this.canvas.classList.toggle("faded", known);
    this.write(pen);
    if (!known || active === null) return;
    const own = this.lines.filter(({ row, key }) => (active.side === "target" ? row : key) === active.index);
    this.stroke(pen, own, 1.4);
    const { x, y } = this.at(active.side, active.index);
    const target = active.side === "target";
    pen.strokeStyle = this.theme.tone("accent");
    pen.lineWidth = 2;
    const size = ends[active.side].sizes[active.index] ?? 0;
    if (this.wide) pen.strokeRect(x - size / 2 + 1, target ? y - WORD + 3 : y + 3, size - 2, WORD - 6);
    else pen.strokeRect(target ? x - this.column + 2 : x + 4, y - LINE_HEIGHT / 2, this.column - 6, LINE_HEIGHT);
  }
}
