import { arrange, styled, write } from "./dom.ts";
import type { Label } from "./label.ts";
import { descending, top } from "./matrix.ts";
import { type Ramp, colour, css } from "./ramp.ts";
import { exact } from "./share.ts";
import type { Order } from "./state.ts";

const LINE = 26; // px of a line
const COLUMN = 260; // px of a column, where several fit beside each other
const GAP = 24; // px between columns
const SHORT = 6; // letters that always fit
const MORE = 8; // lines that are there beyond those in view

/** How the lines of a list look at one moment. */
interface Shade {
  readonly ramp: Ramp;
  readonly dark: (weight: number, index: number) => number;
  readonly partner: number | null;
}

/** A line that is there, and how it looks. */
interface Line {
  readonly element: HTMLLIElement;
  readonly word: HTMLElement;
  readonly track: HTMLElement;
  readonly number: HTMLElement;
  look: string;
  paint: string | null;
}

/**
 * One line per token: its text, a bar from 0 to 100 %, and the number. Where there is room, lines
 * go on in the next column. Only those in view are there.
 */
export class Bars {
  private labels: readonly Label[] = [];
  private weights: readonly number[] = [];
  private indices: readonly number[] = [];
  private top = -1;
  private shade: Shade | null = null;
  private readonly before = document.createElement("li");
  private readonly after = document.createElement("li");
  private lines = new Map<number, Line>(); // that are there, by their tokens
  // How large the list is and how far it is scrolled: to ask the browser costs a layout each time.
  private size = { width: 0, height: 0 };
  private offset = 0;
  private scrolling = false;

  constructor(private readonly list: HTMLElement) {
    for (const room of [this.before, this.after]) {
      room.className = "room";
      room.ariaHidden = "true";
    }
    list.addEventListener("scroll", () => {
      const offset = this.each === null ? list.scrollTop : list.scrollLeft;
      if (this.scrolling || Math.abs(offset - this.offset) < 1) return; // its own scroll, and the lines are there
      this.offset = offset;
      this.render();
    });
    new ResizeObserver(() => {
      this.size = { width: list.clientWidth, height: list.clientHeight };
      this.offset = this.each === null ? list.scrollTop : list.scrollLeft;
      this.bring();
    }).observe(list);
    this.size = { width: list.clientWidth, height: list.clientHeight };
  }

  draw(labels: readonly Label[], weights: readonly number[], order: Order, shade: Shade): void {
    [this.labels, this.weights, this.shade] = [labels, weights, shade];
    this.indices = order === "weight" ? descending(weights) : weights.map((_, index) => index);
    this.top = top(weights, 1)[0] ?? -1;
    this.bring();
  }

  /** In a long list the largest is brought into view, without moving the page. */
  private bring(): void {
    const { step, size, room } = this.measures;
    const place = Math.floor(this.indices.indexOf(this.shade?.partner ?? this.top) / size) * step;
    const hidden = place < this.offset || place + step > this.offset + room;
    const most = Math.max(Math.ceil(this.indices.length / size) * step - room, 0);
    if (hidden) this.offset = Math.min(Math.max(place + step / 2 - room / 2, 0), most);
    this.render();
    if (hidden && !this.scrolling) {
      this.scrolling = true;
      requestAnimationFrame(() => this.scroll());
    }
  }

  /** With the next picture: to scroll is to lay out at once, and the browser does that there. */
  private scroll(): void {
    this.scrolling = false;
    if (this.each === null) this.list.scrollTop = this.offset;
    else this.list.scrollLeft = this.offset;
  }

  /** How many lines a column has; null where there is one column for all. */
  private get each(): number | null {
    const { width, height } = this.size;
    return width >= 2 * COLUMN ? Math.max(Math.floor(height / LINE), 1) : null;
  }

  /** A step of the list in pixels, how many lines it has, and how many pixels are in view. */
  private get measures(): { step: number; size: number; room: number } {
    const { each } = this;
    return each === null
      ? { step: LINE, size: 1, room: Math.max(this.size.height, 8 * LINE) }
      : { step: COLUMN, size: each, room: this.size.width };
  }

  /** The lines in view, with room before and after for the others. */
  private render(): void {
    const { list, indices, each } = this;
    const { step, size, room } = this.measures;
    const [steps, more] = [Math.ceil(indices.length / size), each === null ? MORE : 1];
    const from = Math.min(Math.max(Math.floor(this.offset / step) - more, 0), Math.max(steps - 1, 0));
    const to = Math.min(from + Math.ceil(room / step) + 2 * more, steps);
    list.classList.toggle("columns", each !== null);
    styled(list, "--lines", String(size));
    // The room before takes a column of its own, as wide as all that it stands for.
    styled(list, "grid-template-columns", from > 0 ? `${from * step - GAP}px` : "none");
    styled(this.before, "--room", `${from * step}px`);
    styled(this.after, "--room", `${(steps - to) * step}px`);
    const there = this.lines;
    this.lines = new Map(
      indices.slice(from * size, to * size).map((index) => [index, there.get(index) ?? blankLine()]),
    );
    let position = from * size;
    for (const [index, line] of this.lines) this.fill(line, index, ++position);
    const lines = [...this.lines.values()].map(({ element }) => element);
    arrange(list, [...(from > 0 ? [this.before] : []), ...lines, ...(to < steps ? [this.after] : [])]);
  }

  /** What a line says now. */
  private fill(line: Line, index: number, position: number): void {
    const { shade, weights, labels } = this;
    const weight = weights[index] ?? 0;
    const label = labels[index];
    const { element, word, track, number } = line;
    const text = label?.text ?? "";
    write(word, text);
    word.classList.toggle("long", text.length > SHORT);
    write(number, exact(weight));
    const paint = shade && css(colour(shade.ramp, shade.dark(weight, index)));
    const marks = [index === this.top && weight > 0, index === shade?.partner, label?.special ?? false];
    const look = `${marks.join()} ${position} ${weights.length}`;
    if (look !== line.look) {
      line.look = look;
      ["top", "partner", "special"].forEach((name, at) => element.classList.toggle(name, marks[at] ?? false));
      [element.ariaPosInSet, element.ariaSetSize] = [String(position), String(weights.length)];
    }
    const title = label?.whole?.slice(0, 20_000) ?? "";
    if (word.title !== title) word.title = title;
    // The bar is a picture behind the track: its length is painted, and nothing is laid out for it.
    styled(track, "background-size", `${Math.round(weight * 1e4) / 100}% 100%`);
    if (paint === line.paint) return;
    line.paint = paint;
    track.style.setProperty("background-image", `linear-gradient(${paint}, ${paint})`);
  }
}

function blankLine(): Line {
  const element = document.createElement("li");
  element.className = "line";
  const part = (name: "bdi" | "span", kind: string) => {
    const made = document.createElement(name);
    made.className = kind;
    element.append(made);
    return made;
  };
  return { element, word: part("bdi", "word"), track: part("span", "track"), number: part("span", "number"), look: "", paint: null };
}
