import { openIn } from "./document.ts";
import { Served } from "./served.ts";

// The page of a server.
openIn(document.body, new Served(Number(new URLSearchParams(location.search).get("s"))));
