import assert from "node:assert/strict";
import { test } from "node:test";
import { computed, effect, signal } from "../src/signals.ts";

test("an effect runs at once, and again when what it read changes", () => {
  const [one, other] = [signal(1), signal(10)];
  const seen: number[] = [];
  const end = effect(() => void seen.push(one.value === 1 ? one.value : one.value + other.value));
  other.value = 20; // was not read
  one.value = 2;
  other.value = 30;
  one.value = 2; // is the same
  assert.deepEqual(seen, [1, 22, 32]);
  end();
  one.value = 3;
  assert.equal(seen.length, 3);
});

test("what is computed is computed once, when it is read and something has changed", () => {
  const one = signal(1);
  let count = 0;
  const half = computed(() => {
    count += 1;
    return Math.floor(one.value / 2);
  });
  assert.equal(count, 0);
  assert.deepEqual([half.value, half.peek(), count], [0, 0, 1]);
  const seen: number[] = [];
  effect(() => void seen.push(half.value));
  one.value = 2;
  one.value = 3; // half of it is the same
  assert.deepEqual(seen, [0, 1]);
  assert.equal(count, 3);
});

test("an effect never sees one of two values before the other has followed", () => {
  const one = signal(1);
  const twice = computed(() => one.value * 2);
  const sum = computed(() => one.value + twice.value);
  const seen: string[] = [];
  effect(() => void seen.push(`${one.value} ${twice.value} ${sum.value}`));
  one.value = 5;
  assert.deepEqual(seen, ["1 2 3", "5 10 15"]);
});

test("an effect may change a signal, and what only looks follows nothing", () => {
  const [one, copy] = [signal(1), signal(0)];
  const seen: number[] = [];
  effect(() => void (copy.value = one.value * 10));
  effect(() => void seen.push(copy.value + one.peek()));
  one.value = 2;
  assert.deepEqual(seen, [11, 22]);
});
