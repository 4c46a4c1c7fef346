import type { Answer, Door, Explained, MechanismQuestion, Model, Part, Statistics, Tokens } from "./door.ts";
import { type Excerpt, type Span, cells } from "./excerpt.ts";
import { Problem } from "./problem.ts";
import { type Tile, unpack, unpackOverview } from "./tile.ts";

/** What anywidget hands over: a way to send to Python, and to hear from it. */
export interface Channel {
  send(message: unknown): void;
  on(event: "msg:custom", hear: (message: unknown, buffers: readonly DataView[]) => void): void;
  off(event: "msg:custom", hear: (message: unknown, buffers: readonly DataView[]) => void): void;
}

interface Reply {
  readonly said: unknown;
  readonly content: ArrayBuffer | null;
}

/** A door to the Python of a notebook; each question has a number, by which its answer is known. */
export class Messages implements Door {
  private readonly waiting = new Map<number, (reply: Reply) => void>();
  private latest = 0;

  constructor(private readonly channel: Channel) {
    channel.on("msg:custom", this.hear);
  }

  close(): void {
    this.channel.off("msg:custom", this.hear);
    this.waiting.clear();
  }

  async model(): Promise<Model> {
    return (await this.ask({ ask: "model" })).said as Model;
  }

  translate(): Promise<Answer> {
    return Promise.reject(
      new Problem("a text of this trace", "another text", "open the model with attlas look"),
    );
  }

  async text(row: number, signal: AbortSignal): Promise<Answer> {
    return (await this.ask({ ask: "text", row }, signal)).said as Answer;
  }

  async overview(map: string, signal: AbortSignal): Promise<readonly Tile[]> {
    return unpackOverview(content(await this.ask({ ask: "overview", map }, signal)));
  }

  async statistics(map: string, signal: AbortSignal): Promise<Statistics> {
    return (await this.ask({ ask: "statistics", map }, signal)).said as Statistics;
  }

  async tile(map: string, layer: number, part: Part, signal: AbortSignal): Promise<Tile> {
    const { excerpt, head, rough } = part;
    const shape = `${cells(excerpt.rows)},${cells(excerpt.keys)}`;
    const heads = head === null ? {} : { heads: range({ from: head, to: head + 1 }) };
    const levels = rough ? { bits: "8", curve: "root" } : {};
    const query = { ...ranges(excerpt), shape, ...heads, ...levels };
    return unpack(content(await this.ask({ ask: "tile", map, layer, query }, signal)));
  }

  async tokens(map: string, layer: number, excerpt: Excerpt, signal: AbortSignal): Promise<Tokens> {
    const question = { ask: "tokens", map, layer, query: ranges(excerpt) };
    return (await this.ask(question, signal)).said as Tokens;
  }

  async image(map: string, layer: number, signal: AbortSignal): Promise<ArrayBuffer> {
    return content(await this.ask({ ask: "image", map, layer }, signal));
  }

  async mechanism(map: string, { layer, head, row, key }: MechanismQuestion, signal: AbortSignal): Promise<Explained> {
    const query = { head: String(head), row: String(row), ...(key === null ? {} : { key: String(key) }) };
    return (await this.ask({ ask: "mechanism", map, layer, query }, signal)).said as Explained;
  }

  private ask(question: object, signal?: AbortSignal): Promise<Reply> {
    const id = ++this.latest;
    return new Promise((resolve, reject) => {
      // Python answers one message after another: none could stop the one that it is at.
      const abandon = () => {
        this.waiting.delete(id);
        reject(signal?.reason as Error);
      };
      if (signal?.aborted) return abandon();
      signal?.addEventListener("abort", abandon, { once: true });
      this.waiting.set(id, (reply) => {
        signal?.removeEventListener("abort", abandon);
        const wrong = (reply.said as { error?: unknown } | null)?.error;
        const problem = wrong === undefined ? null : Problem.read(wrong);
        if (!problem) resolve(reply);
        else reject(problem);
      });
      this.channel.send({ id, ...question });
    });
  }

  private readonly hear = (message: unknown, buffers: readonly DataView[]): void => {
    const { id, answer } = message as { id: number; answer: unknown };
    const answered = this.waiting.get(id);
    this.waiting.delete(id);
    const view = buffers[0];
    const bytes = view && new Uint8Array(view.buffer, view.byteOffset, view.byteLength);
    answered?.({ said: answer, content: bytes ? bytes.slice().buffer : null });
  };
}

function content({ content }: Reply): ArrayBuffer {
  if (content) return content;
  throw new Problem("an answer in bytes", "one without", "run the cell again");
}

function range({ from, to }: Span): string {
  return `${from}:${to}`;
}

function ranges({ rows, keys }: Excerpt): { rows: string; keys: string } {
  return { rows: range(rows), keys: range(keys) };
}
