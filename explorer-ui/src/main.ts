import { Explorer } from "./explorer.ts";
import { Served } from "./served.ts";

const explorer = new Explorer(new Served());
window.addEventListener("hashchange", () => void explorer.follow(location.hash));
void explorer.begin(location.hash);
