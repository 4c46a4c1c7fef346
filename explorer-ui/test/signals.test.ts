import assert from "node:assert/strict";
import { test } from "node:test";
import { type Signal, computed, signal } from "@preact/signals-core";
import { type ComponentChild, Fragment, createContext, h, render } from "preact";
import { useContext } from "preact/hooks";
import { useSignal, useSignalEffect } from "../src/signals.ts";

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

test("a signal of a component's own stays, and a context gives what it gave", async () => {
  const Given = createContext("");
  const seen: string[] = [];
  let own: Signal<number> | null = null;
  const Child = () => {
    own = useSignal(0);
    seen.push(`${useContext(Given)} ${own.value}`);
    return null;
  };
  const end = shown(h(Given.Provider, { value: "given", children: h(Child, null) }));
  const first = own as unknown as Signal<number>;
  first.value = 5;
  await drawn();
  assert.deepEqual(seen, ["given 0", "given 5"]);
  assert.equal(own, first);
  end();
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
