import assert from "node:assert/strict";
import { test } from "node:test";
import { type Signal, computed, signal } from "@preact/signals-core";
import { type ComponentChild, Fragment, h, render } from "preact";
import type { Explorer } from "../src/explorer.ts";
import { ExplorerOf, useExplorer } from "../src/panel.ts";
import { useSignal, useSignalEffect } from "../src/signals.ts";

Object.assign(globalThis, { document: {} }); // Preact asks whether it draws into the document itself

/** Show what draws nothing; what comes back takes it away. */
function shown(content: ComponentChild): () => void {
  const root = { childNodes: [], ownerDocument: {}, namespaceURI: "" } as unknown as Element;
  render(content, root);
  return () => render(null, root);
}

const drawn = () => new Promise<void>((resolve) => setTimeout(resolve, 20));

/** Preact runs and ends effects after the browser has painted, or a little later. */
const settled = () => new Promise<void>((resolve) => setTimeout(resolve, 300));

test("a component is drawn again when a signal changes that it read, once for several", async () => {
  const [one, other, unread] = [signal(1), signal(10), signal(0)];
  const sum = computed(() => one.value + other.value);
  const seen: number[] = [];
  const end = shown(h(() => (seen.push(sum.value), unread.peek(), null), null));
  assert.deepEqual(seen, [11]);
  [one.value, other.value, unread.value] = [2, 20, 1];
  assert.deepEqual(seen, [11]);
  await drawn();
  assert.deepEqual(seen, [11, 22]);
  [one.value, other.value] = [20, 2]; // the sum is the same
  unread.value = 2;
  await drawn();
  other.value = 3;
  await drawn();
  assert.equal(seen.at(-1), 23);
  await settled();
  end();
  other.value = 4;
  await drawn();
  assert.equal(seen.at(-1), 23);
});

test("a component follows what it read when it was drawn last, and its parent does not follow it", async () => {
  const [which, one, other] = [signal(true), signal(1), signal(10)];
  const seen: number[] = [];
  let parents = 0;
  const Child = () => (seen.push(which.value ? one.value : other.value), null);
  const end = shown(h(() => ((parents += 1), h(Fragment, null, h(Child, null))), null));
  other.value = 20; // was not read
  which.value = false;
  await drawn();
  one.value = 2; // is not read any more
  await drawn();
  other.value = 30;
  await drawn();
  assert.deepEqual(seen, [1, 20, 30]);
  assert.equal(parents, 1);
  end();
});

test("a signal of a component's own stays, and so does its explorer, of several", async () => {
  const seen: string[] = [];
  const own: Signal<number>[] = [];
  const Child = () => {
    const count = useSignal(0);
    const { name } = useExplorer() as unknown as { name: string };
    seen.push(`${name} ${count.value}`);
    own.push(count);
    return null;
  };
  const inside = (name: string) =>
    h(ExplorerOf, { value: { name } as unknown as Explorer, children: h(Fragment, null, h(Child, null)) });
  const end = shown(h(Fragment, null, inside("one"), inside("other")));
  const [first, second] = own as [Signal<number>, Signal<number>];
  first.value = 5;
  await drawn();
  second.value = 6;
  await drawn();
  assert.deepEqual(seen, ["one 0", "other 0", "one 5", "other 6"]);
  assert.deepEqual(own, [first, second, first, second]);
  end();
  assert.throws(() => shown(h(Child, null)), /outside of an explorer/);
});

test("an effect of a component runs at once when a signal changes, as it was drawn last, until the component goes", async () => {
  const [one, factor] = [signal(1), signal(1)];
  const seen: number[] = [];
  const end = shown(
    h(() => {
      const times = factor.value;
      useSignalEffect(() => void seen.push(one.value * times));
      return null;
    }, null),
  );
  await settled();
  assert.deepEqual(seen, [1]);
  one.value = 2;
  assert.deepEqual(seen, [1, 2]);
  factor.value = 10;
  await drawn();
  one.value = 3;
  assert.deepEqual(seen, [1, 2, 30]);
  end();
  await settled();
  one.value = 4;
  assert.equal(seen.length, 3);
});

test("what a component throws while it is drawn is not kept back", () => {
  const Broken = () => {
    throw new Error("not drawn");
  };
  assert.throws(() => shown(h(Broken, null)), /not drawn/);
});
