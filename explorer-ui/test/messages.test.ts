import assert from "node:assert/strict";
import { test } from "node:test";
import { type Channel, Messages } from "../src/messages.ts";
import { Problem } from "../src/problem.ts";

type Hear = (message: unknown, buffers: readonly DataView[]) => void;
type Sent = { readonly id: number; readonly ask: string } & Readonly<Record<string, unknown>>;

/** A channel to a Python that says what the test lets it say. */
class Fake implements Channel {
  readonly sent: Sent[] = [];
  readonly hearing: Hear[] = [];
  send(message: unknown): void {
    this.sent.push(message as Sent);
  }
  on(_: "msg:custom", hear: Hear): void {
    this.hearing.push(hear);
  }
  off(_: "msg:custom", hear: Hear): void {
    this.hearing.splice(this.hearing.indexOf(hear), 1);
  }
  say(id: number, answer: unknown, buffers: readonly DataView[] = []): void {
    for (const hear of this.hearing) hear({ id, answer }, buffers);
  }
}

function opened(): { channel: Fake; door: Messages } {
  const channel = new Fake();
  return { channel, door: new Messages(channel) };
}

const heard = new AbortController().signal;
const excerpt = { rows: { from: 0, to: 3 }, keys: { from: 2, to: 9 } };

test("each answer goes to its own question, in whatever order they come", async () => {
  const { channel, door } = opened();
  const asked = [door.text(0, heard), door.text(1, heard), door.model()];
  assert.deepEqual(channel.sent.map(({ ask, row }) => [ask, row]), [["text", 0], ["text", 1], ["model", undefined]]);
  assert.equal(new Set(channel.sent.map(({ id }) => id)).size, 3);
  for (const { id, ask, row } of [...channel.sent].reverse()) channel.say(id, { of: row ?? ask });
  assert.deepEqual(await Promise.all(asked), [{ of: 0 }, { of: 1 }, { of: "model" }]);
});

test("a part is asked for as the server is asked, in texts", async () => {
  const { channel, door } = opened();
  const tokens = door.tokens("2", 1, excerpt, heard);
  void door.tile("2", 1, { excerpt, head: 4, rough: true }, heard).catch(() => undefined);
  void door.tile("2", 1, { excerpt, head: null }, heard).catch(() => undefined);
  void door.mechanism("2", { layer: 1, head: 3, row: 5, key: null }, heard);
  const ranges = { rows: "0:3", keys: "2:9" };
  const ofMap = { map: "2", layer: 1 };
  assert.deepEqual(channel.sent, [
    { id: 1, ask: "tokens", ...ofMap, query: ranges },
    { id: 2, ask: "tile", ...ofMap, query: { ...ranges, shape: "3,7", heads: "4:5", bits: "8", curve: "root" } },
    { id: 3, ask: "tile", ...ofMap, query: { ...ranges, shape: "3,7" } },
    { id: 4, ask: "mechanism", ...ofMap, query: { head: "3", row: "5" } },
  ]);
  channel.say(1, { rows: ["a"], keys: ["b"] });
  assert.deepEqual(await tokens, { rows: ["a"], keys: ["b"] });
});

test("bytes are those of the view, not of all that lies in its buffer", async () => {
  const { channel, door } = opened();
  const image = door.image("0", 0, heard);
  const lent = Uint8Array.from([9, 9, 1, 2, 3, 9]).buffer;
  channel.say(1, {}, [new DataView(lent, 2, 3)]);
  assert.deepEqual([...new Uint8Array(await image)], [1, 2, 3]);
});

test("an answer that should have bytes and has none is a problem, and so is one that says so", async () => {
  const { channel, door } = opened();
  const [image, text] = [door.image("0", 0, heard), door.text(9, heard)];
  channel.say(1, {});
  channel.say(2, { error: { expected: "row as a number from 0 to 1", got: "9", hint: "count from 0" } });
  await assert.rejects(image, /an answer in bytes/);
  await assert.rejects(text, (thrown) => thrown instanceof Problem && /row as a number from 0 to 1/.test(thrown.message));
});

test("what is abandoned is rejected, and its answer is dropped", async () => {
  const { channel, door } = opened();
  const stop = new AbortController();
  const abandoned = door.text(0, stop.signal);
  const kept = door.text(1, heard);
  stop.abort(new Error("another text"));
  await assert.rejects(abandoned, /another text/);
  channel.say(1, { of: 0 });
  channel.say(2, { of: 1 });
  assert.deepEqual(await kept, { of: 1 });
  await assert.rejects(door.text(2, stop.signal), /another text/);
  assert.equal(channel.sent.length, 2); // what is abandoned before it is asked is not asked
});

test("a door that is closed hears nothing more", () => {
  const { channel, door } = opened();
  assert.equal(channel.hearing.length, 1);
  door.close();
  assert.equal(channel.hearing.length, 0);
});

test("a trace has no text that is typed", async () => {
  await assert.rejects(opened().door.translate(), /a text of this trace/);
});
