import assert from "node:assert/strict";
import { test } from "node:test";
import { cellAt, layout, stride } from "../src/layout.ts";

const widths = (columns: number, width = 40) => ({
  row: 60,
  columns: Array.from({ length: columns }, () => width),
});

for (const [rows, columns, room] of [
  [5, 6, 600],
  [15, 15, 288],
  [70, 70, 600],
  [3, 40, 500],
] as const) {
  test(`a map of ${rows} × ${columns} fits into ${room} px`, () => {
    const plan = layout(rows, room, widths(columns));
    assert.ok(plan.width <= room, `${plan.width}`);
    assert.ok(plan.cell >= 6 && plan.cell <= 38);
  });
}

test("the middle of every cell is found again, and a label is no cell", () => {
  const plan = layout(4, 400, widths(5));
  for (let row = 0; row < 4; row++) {
    for (let column = 0; column < 5; column++) {
      const x = plan.left + (column + 0.5) * plan.cell;
      const y = plan.top + (row + 0.5) * plan.cell;
      assert.deepEqual(cellAt(plan, x, y), { row, column });
    }
  }
  assert.equal(cellAt(plan, plan.left - 1, plan.top + 1), null);
  assert.equal(cellAt(plan, plan.left + 1, plan.top - 1), null);
  assert.equal(cellAt(plan, plan.left + 5 * plan.cell, plan.top + 1), null);
});

test("a huge map stays within what a canvas can hold", () => {
  const plan = layout(2000, 600, widths(2000), 2);
  assert.ok(plan.width * 2 <= 4098 && plan.height * 2 <= 4098, `${plan.width} × ${plan.height}`);
});

test("a map whose cells stand for many weights fits into the room", () => {
  const plan = layout(512, 700, widths(512), 1, true);
  assert.ok(plan.width <= 700 && plan.cell >= 1, `${plan.width}`);
  assert.ok(layout(512, 300, widths(512), 1, true).width <= 300);
  assert.ok(layout(512, 2_000, widths(512), 1, true).height < 760);
  assert.ok(layout(512, 700, widths(512)).width > 700);
});

test("labels over wide cells lean, over narrow ones they stand, over tiny ones some are left out", () => {
  assert.equal(layout(5, 600, widths(6)).angle, Math.PI / 4);
  const narrow = layout(15, 330, widths(15));
  assert.equal(narrow.angle, Math.PI / 2);
  assert.equal(stride(narrow), 1);
  assert.ok(stride(layout(70, 600, widths(70))) > 1);
});

test("leaning labels end inside of the map's width", () => {
  const plan = layout(5, 600, widths(6, 112));
  const lastTip = plan.left + 5.5 * plan.cell + 112 * Math.cos(plan.angle);
  assert.ok(lastTip <= plan.width);
});
