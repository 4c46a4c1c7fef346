import * as address from "./address.ts";
import { Explorer } from "./explorer.ts";
import { Served } from "./served.ts";

const explorer = new Explorer(new Served());
window.addEventListener("hashchange", () => {
  const text = address.read(location.hash);
  if (text !== null) explorer.translate(text);
});
void explorer.begin(address.read(location.hash));
